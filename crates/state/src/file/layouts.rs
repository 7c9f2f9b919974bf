use std::time::Duration;

use super::Holder;
use super::delegations::Recall;
use super::holders::Holders;
use super::unsettled_size::{SizeStep, UnsettledSize};
use crate::ClientId;

/// The layouts of a file, and the fence that has to be raised on its data servers. Most files never
/// have a layout and take one word.
#[derive(Default)]
pub(crate) struct Layouts(Option<Box<PlacedFile>>);

/// The layouts and the fence of a file that has or had layouts.
#[derive(Default)]
struct PlacedFile {
    /// The holders, each with the recall of its layout, if one is under way.
    held: Holders<Option<Recall>>,
    /// Time until which no layout is given out, so that the operation that has recalled the layouts
    /// can be done.
    rest: Duration,
    /// True from the end of a layout that its holder did not give back until the data servers
    /// refuse the handles of that layout.
    unfenced: bool,
    size: UnsettledSize,
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
        let is_idle = |it: &PlacedFile| {
            it.held.is_empty() && !it.unfenced && it.rest <= now && it.size.is_settled()
        };
        self.0.as_deref().is_none_or(is_idle)
    }

    /// Returns whether a tick may change the layouts.
    pub(crate) fn has_deadline(&self) -> bool {
        self.0.as_deref().is_some_and(|it| it.rest > Duration::ZERO || it.is_recalled())
    }

    /// Forgets a rest that is over.
    pub(crate) fn refresh(&mut self, now: Duration) {
        if let Some(it) = self.0.as_deref_mut().filter(|it| it.rest <= now) {
            it.rest = Duration::ZERO;
        }
    }

    /// Returns the number of a client's layout.
    pub(crate) fn of(&self, client: ClientId) -> Option<u32> {
        self.0.as_deref()?.held.of(client).map(|(holder, _)| holder.state)
    }

    /// Adds a layout; returns whether the holder had none before.
    pub(crate) fn insert(&mut self, holder: Holder) -> bool {
        self.0.get_or_insert_default().held.insert(holder, None).is_none()
    }

    /// Removes a layout; returns whether there was one.
    pub(crate) fn remove(&mut self, holder: Holder) -> bool {
        self.0.as_deref_mut().is_some_and(|it| it.held.remove(holder).is_some())
    }

    /// Returns why no layout may be given out now, if that is so.
    pub(crate) fn refusal(&self, now: Duration) -> Option<NoLayout> {
        let it = self.0.as_deref()?;
        match () {
            () if it.is_recalled() || it.unfenced => Some(NoLayout::Recall),
            () if it.rest > now => Some(NoLayout::Rest),
            () => None,
        }
    }

    /// Returns whether an operation of a client has to wait: for layouts of others, or until data
    /// servers refuse the handles of one.
    pub(crate) fn stand_against(&self, mine: Option<ClientId>) -> bool {
        self.0.as_deref().is_some_and(|it| it.unfenced) || self.others(mine).next().is_some()
    }

    /// Returns the holders of layouts but one client.
    pub(crate) fn others(&self, mine: Option<ClientId>) -> impl Iterator<Item = Holder> {
        let holders = self.0.iter().flat_map(|it| it.held.iter()).map(|(holder, _)| holder);
        holders.filter(move |it| Some(it.client) != mine)
    }

    /// Gives out no layout until `until`.
    pub(crate) fn rest_until(&mut self, until: Duration) {
        let rest = &mut self.0.get_or_insert_default().rest;
        *rest = (*rest).max(until);
    }

    /// Returns whether no client has a layout, and no fence has to be raised.
    pub(crate) fn are_over(&self) -> bool {
        self.0.as_deref().is_none_or(|it| it.held.is_empty() && !it.unfenced)
    }

    /// Returns the time until which no layout is given out.
    pub(crate) fn rest(&self) -> Duration {
        self.0.as_deref().map_or(Duration::ZERO, |it| it.rest)
    }

    /// Begins to recall a layout; returns whether no recall of it was under way.
    pub(crate) fn begin_recall(&mut self, now: Duration, holder: Holder) -> bool {
        let held = self.0.as_deref_mut().and_then(|it| it.held.get_mut(holder));
        let Some(recall @ None) = held else { return false };
        *recall = Some(Recall { queued: now, sent: None, until: None, wanted_by: None });
        true
    }

    /// Returns the recall of a layout, if one is under way.
    pub(crate) fn recall_mut(&mut self, holder: Holder) -> Option<&mut Recall> {
        self.0.as_deref_mut()?.held.get_mut(holder)?.as_mut()
    }

    /// Returns the layouts that are being recalled.
    pub(crate) fn recalled(&self) -> impl Iterator<Item = (Holder, Recall)> {
        let held = self.0.iter().flat_map(|it| it.held.iter());
        held.filter_map(|(holder, recall)| Some((holder, (*recall)?)))
    }

    /// Notes a new layout for writing; returns whether the file must be recorded.
    pub(crate) fn begin_writing(&mut self) -> bool {
        self.0.get_or_insert_default().size.begin_writing()
    }

    /// Notes the end of a layout for writing. Its client may go on writing if it did not give the
    /// layout back. Returns whether the size has a next step.
    pub(crate) fn end_writing(&mut self, is_committed: bool) -> bool {
        let it = self.0.get_or_insert_default();
        it.size.end_writing(!is_committed || it.unfenced)
    }

    /// Notes that clients may have written without saying so; returns whether the size has a next
    /// step.
    pub(crate) fn doubt_size(&mut self) -> bool {
        self.0.get_or_insert_default().size.doubt()
    }

    /// Returns whether the size has a next step, and no queue has the file yet.
    pub(crate) fn queue_size(&mut self) -> bool {
        self.0.as_deref_mut().is_some_and(|it| it.size.queue())
    }

    /// Begins the next step of the size. There is none until a fence is raised: writes by earlier
    /// handles may still come.
    pub(crate) fn begin_size_step(&mut self) -> Option<SizeStep> {
        let it = self.0.as_deref_mut()?;
        if it.unfenced {
            it.size.wait();
            return None;
        }
        it.size.begin_step()
    }

    /// Notes whether data servers have told the size; returns whether it has a next step.
    pub(crate) fn size_asked(&mut self, done: bool) -> bool {
        self.0.as_deref_mut().is_some_and(|it| it.size.asked(done))
    }

    /// Returns whether data servers must be asked for the size, or are being asked.
    pub(crate) fn is_size_doubtful(&self) -> bool {
        self.0.as_deref().is_some_and(|it| it.size.is_doubtful())
    }

    /// Returns whether clients may write to data servers, or have done so a moment ago.
    pub(crate) fn may_be_written(&self) -> bool {
        self.0.as_deref().is_some_and(|it| it.unfenced || !it.size.is_settled())
    }

    /// Notes that data servers have still to refuse handles; returns whether that is new.
    pub(crate) fn begin_fence(&mut self) -> bool {
        !std::mem::replace(&mut self.0.get_or_insert_default().unfenced, true)
    }

    /// Notes that data servers refuse the handles; returns whether that was awaited.
    pub(crate) fn end_fence(&mut self) -> bool {
        self.0.as_deref_mut().is_some_and(|it| std::mem::take(&mut it.unfenced))
    }
}

impl PlacedFile {
    fn is_recalled(&self) -> bool {
        self.held.iter().any(|(_, recall)| recall.is_some())
    }
}
