use std::collections::VecDeque;
use std::time::Duration;

use super::Holder;
use super::holders::Holders;
use super::share::Share;
use crate::{ClientId, Principal, Stateid};

/// The kind of a delegation, which says what it allows (RFC 8881, 10.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DelegationKind {
    /// No client writes.
    Read,
    /// No other client reads or writes.
    Write,
}

impl DelegationKind {
    /// Returns whether it allows this access.
    pub(crate) fn allows(self, access: u32) -> bool {
        self == Self::Write || access & Share::WRITE == 0
    }
}

/// A delegation of a file.
#[derive(Debug)]
pub(crate) struct Delegated {
    pub(crate) kind: DelegationKind,
    pub(crate) stateid: Stateid,
    /// To whom it was given.
    pub(crate) principal: Principal,
    pub(crate) recall: Option<Recall>,
    /// The change attribute it was given with.
    pub(crate) given: Option<u64>,
    /// The questions to its holder, if there were any.
    pub(crate) writer: Option<Box<Writer>>,
}

/// A recall that is under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recall {
    pub(crate) queued: Duration,
    /// When the client was told: the deadline counts from here.
    pub(crate) sent: Option<Duration>,
    /// When it ends at the latest, because a program on the server goes on then.
    pub(crate) until: Option<Duration>,
    /// The client that stands waiting, if it is one of NFSv4 or NLM.
    pub(crate) wanted_by: Option<ClientId>,
}

/// Questions to the holder of a write delegation about size and change (CB_GETATTR).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Writer {
    pub(crate) asked: Option<Duration>,
    pub(crate) said: Option<WriterReply>,
    /// The highest change attribute that others were told.
    pub(crate) shown: u64,
    /// It could not answer.
    pub(crate) mute: bool,
}

/// An answer of such a holder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterReply {
    pub(crate) at: Duration,
    pub(crate) size: u64,
    pub(crate) change: u64,
    /// The change attribute that others were told by it.
    pub(crate) told: Option<u64>,
}

/// The delegations of a file, and to whom none is given for a while.
#[derive(Default)]
pub(crate) struct Delegations {
    held: Holders<Delegated>,
    rest: VecDeque<(ClientId, Duration)>,
}

/// Clients of one file whose recall is remembered; if there are more, no client gets a delegation
/// for a while.
const RESTING_MAX: usize = 8;

impl Delegations {
    pub(crate) fn insert(&mut self, holder: Holder, delegated: Delegated) {
        self.held.insert(holder, delegated);
    }

    pub(crate) fn remove(&mut self, holder: Holder) -> Option<Delegated> {
        self.held.remove(holder)
    }

    pub(crate) fn get_mut(&mut self, holder: Holder) -> Option<&mut Delegated> {
        self.held.get_mut(holder)
    }

    pub(crate) fn is_recalled(&mut self, holder: Holder) -> bool {
        self.held.get_mut(holder).is_some_and(|delegated| delegated.recall.is_some())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Holder, &Delegated)> {
        self.held.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Holder, &mut Delegated)> {
        self.held.iter_mut()
    }

    /// The delegation of a client other than `mine` that stands against `share`.
    pub(crate) fn conflict(&self, mine: Option<ClientId>, share: Share) -> Option<Holder> {
        let stands = |kind| kind == DelegationKind::Write || writes(share);
        let mut others = self.held.iter().filter(|(holder, _)| Some(holder.client) != mine);
        others.find(|(_, delegated)| stands(delegated.kind)).map(|(holder, _)| holder)
    }

    /// Returns the strongest delegation.
    pub(crate) fn strongest(&self) -> Option<DelegationKind> {
        self.held.iter().map(|(_, delegated)| delegated.kind).max()
    }

    /// Ends the recalls that are under way at `until`, if they do not end before.
    pub(crate) fn end_recalls_by(&mut self, until: Duration) {
        for recall in self.held.iter_mut().filter_map(|(_, delegated)| delegated.recall.as_mut()) {
            recall.until = Some(recall.until.map_or(until, |before| before.min(until)));
        }
    }

    /// The one of a client.
    pub(crate) fn of(&self, client: ClientId) -> Option<Holder> {
        self.held.of(client).map(|(holder, _)| holder)
    }

    /// Notes a recall, after which the client gets no delegation until `until`.
    pub(crate) fn note_recall(&mut self, client: ClientId, until: Duration) {
        self.rest.retain(|(other, _)| *other != client);
        if self.rest.len() >= RESTING_MAX {
            self.rest.pop_front();
        }
        self.rest.push_back((client, until));
    }

    /// Returns whether a delegation of this client was recalled not long ago, or so many were that
    /// nobody should get one.
    pub(crate) fn was_recalled_recently(&self, now: Duration, client: ClientId) -> bool {
        let mut recent = self.rest.iter().filter(|(_, until)| *until > now);
        recent.clone().any(|(other, _)| *other == client) || recent.nth(RESTING_MAX - 1).is_some()
    }

    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        self.held.is_empty() && self.rest.iter().all(|(_, until)| *until <= now)
    }

    pub(crate) fn has_deadline(&self) -> bool {
        let recalled = |delegated: &Delegated| delegated.recall.is_some();
        !self.rest.is_empty() || self.held.iter().any(|(_, delegated)| recalled(delegated))
    }

    /// Forgets recalls of long ago.
    pub(crate) fn refresh(&mut self, now: Duration) {
        self.rest.retain(|(_, until)| *until > now);
    }
}

/// Returns whether a share breaks the promises of a read delegation: that nobody writes, and that
/// its holder may open the file for reading.
const fn writes(share: Share) -> bool {
    share.access & Share::WRITE != 0 || share.deny & Share::READ != 0
}

impl Share {
    /// Returns whether it breaks the promises of a read delegation.
    pub(crate) const fn ends_reading(self) -> bool {
        writes(self)
    }
}
