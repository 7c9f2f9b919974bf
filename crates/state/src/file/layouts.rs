use std::time::Duration;

use super::Holder;
use super::delegations::Recall;
use super::holders::Holders;
use crate::ClientId;

/// The layouts of a file, and the fence that has to be raised on its data servers.
#[derive(Default)]
pub(crate) struct Layouts {
    /// The holders, each with the recall of its layout, if one is under way.
    held: Holders<Option<Recall>>,
    /// Time until which no layout is given out, so that the operation that has recalled the layouts
    /// can be done.
    rest: Duration,
    /// True from the end of a layout that its holder did not give back until the data servers
    /// refuse the handles of that layout.
    unfenced: bool,
}

/// The reason why no layout of a file is given out now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoLayout {
    /// Layouts are being recalled, or data servers have still to refuse the handles of one.
    Recall,
    /// An operation that conflicts with layouts was asked for a moment ago.
    Rest,
}

impl Layouts {
    /// Returns whether nothing is to be remembered of the file.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        self.held.is_empty() && !self.unfenced && self.rest <= now
    }

    /// Returns whether a tick may change the layouts.
    pub(crate) fn has_deadline(&self) -> bool {
        self.rest > Duration::ZERO || self.held.iter().any(|(_, recall)| recall.is_some())
    }

    /// Forgets a rest that is over.
    pub(crate) fn refresh(&mut self, now: Duration) {
        if self.rest <= now {
            self.rest = Duration::ZERO;
        }
    }

    /// Returns the number of a client's layout.
    pub(crate) fn of(&self, client: ClientId) -> Option<u32> {
        self.held.of(client).map(|(holder, _)| holder.state)
    }

    /// Adds a layout; returns whether the holder had none before.
    pub(crate) fn insert(&mut self, holder: Holder) -> bool {
        self.held.insert(holder, None).is_none()
    }

    /// Removes a layout; returns whether there was one.
    pub(crate) fn remove(&mut self, holder: Holder) -> bool {
        self.held.remove(holder).is_some()
    }

    /// Returns why no layout may be given out now, if that is so.
    pub(crate) fn refusal(&self, now: Duration) -> Option<NoLayout> {
        let is_recalled = self.held.iter().any(|(_, recall)| recall.is_some());
        match () {
            () if is_recalled || self.unfenced => Some(NoLayout::Recall),
            () if self.rest > now => Some(NoLayout::Rest),
            () => None,
        }
    }

    /// Returns whether an operation of a client has to wait: for layouts of others, or until data
    /// servers refuse the handles of one.
    pub(crate) fn stand_against(&self, mine: Option<ClientId>) -> bool {
        self.unfenced || self.others(mine).next().is_some()
    }

    /// Returns the holders of layouts but one client.
    pub(crate) fn others(&self, mine: Option<ClientId>) -> impl Iterator<Item = Holder> {
        self.held.iter().map(|(holder, _)| holder).filter(move |it| Some(it.client) != mine)
    }

    /// Gives out no layout until `until`.
    pub(crate) fn rest_until(&mut self, until: Duration) {
        self.rest = self.rest.max(until);
    }

    /// Begins to recall a layout; returns whether no recall of it was under way.
    pub(crate) fn begin_recall(&mut self, now: Duration, holder: Holder) -> bool {
        let Some(recall @ None) = self.held.get_mut(holder) else { return false };
        *recall = Some(Recall { queued: now, sent: None, until: None, wanted_by: None });
        true
    }

    /// Returns the recall of a layout, if one is under way.
    pub(crate) fn recall_mut(&mut self, holder: Holder) -> Option<&mut Recall> {
        self.held.get_mut(holder)?.as_mut()
    }

    /// Returns the layouts that are being recalled.
    pub(crate) fn recalled(&self) -> impl Iterator<Item = (Holder, Recall)> {
        self.held.iter().filter_map(|(holder, recall)| Some((holder, (*recall)?)))
    }

    /// Notes that data servers have still to refuse handles; returns whether that is new.
    pub(crate) fn begin_fence(&mut self) -> bool {
        !std::mem::replace(&mut self.unfenced, true)
    }

    /// Notes that data servers refuse the handles; returns whether that was awaited.
    pub(crate) fn end_fence(&mut self) -> bool {
        std::mem::take(&mut self.unfenced)
    }
}
