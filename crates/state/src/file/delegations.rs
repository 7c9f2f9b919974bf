use std::collections::VecDeque;
use std::time::Duration;

use super::Holder;
use super::holders::Holders;
use super::notices::Notices;
use super::share::Share;
use crate::{ClientId, Stateid};

/// The kind of a delegation (RFC 8881, 10.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DelegationKind {
    /// A delegation of a directory (RFC 8881, 10.9): no other client changes it.
    Directory,
    /// A read delegation: no client writes.
    Read,
    /// A write delegation: no other client reads or writes.
    Write,
}

impl DelegationKind {
    /// Returns whether it allows this access.
    pub(crate) fn allows(self, access: u32) -> bool {
        self == Self::Write || access & Share::WRITE == 0
    }
}

/// A delegation of a file or a directory.
#[derive(Debug)]
pub(crate) struct Delegated {
    pub(crate) kind: DelegationKind,
    pub(crate) stateid: Stateid,
    pub(crate) recall: Option<Recall>,
    /// The change attribute of the file when it was granted.
    pub(crate) given: Option<u64>,
    /// CB_GETATTRs to its holder, if there were any.
    pub(crate) writer: Option<Box<Writer>>,
    /// The notifications of changes, if the holder of a directory gets any.
    pub(crate) notices: Option<Box<Notices>>,
}

impl Delegated {
    /// A delegation that was just granted.
    pub(crate) const fn new(
        kind: DelegationKind,
        stateid: Stateid,
        notices: Option<Box<Notices>>,
    ) -> Self {
        Self { kind, stateid, recall: None, given: None, writer: None, notices }
    }

    /// Returns whether the delegation must end before an operation of another client. A change of
    /// a directory may be notified instead, if the holder wants that and keeps up.
    pub(crate) fn stands_against(&self, share: Share) -> bool {
        match self.kind {
            DelegationKind::Write => true,
            _ => writes(share) && !share.told().is_some_and(|told| self.is_notified(told)),
        }
    }

    fn is_notified(&self, told: u32) -> bool {
        let notices = self.notices.as_deref().filter(|_| self.recall.is_none());
        notices.is_some_and(|notices| notices.wishes().has(told) && notices.has_room())
    }
}

/// A recall that is under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recall {
    pub(crate) queued: Duration,
    /// Time at which CB_RECALL was sent. The deadline counts from here.
    pub(crate) sent: Option<Duration>,
    /// Latest end of the recall: a program on the server continues then.
    pub(crate) until: Option<Duration>,
    /// The client that waits for the recall, if it is one of NFSv4 or NLM.
    pub(crate) wanted_by: Option<ClientId>,
}

impl Recall {
    /// Returns whether it has lasted too long. A recall that could not be sent ends after twice the
    /// usual time.
    pub(crate) fn is_overdue(&self, now: Duration, lease: Duration) -> bool {
        if self.until.is_some_and(|until| now >= until) {
            return true;
        }
        let sent = self.sent.map(|sent| sent.saturating_add(lease));
        let queued = self.queued.saturating_add(lease * 2);
        now >= sent.map_or(queued, |sent| sent.min(queued))
    }
}

/// CB_GETATTRs to the holder of a write delegation, and its answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Writer {
    pub(crate) asked: Option<Duration>,
    pub(crate) said: Option<WriterReply>,
    /// The highest change attribute that other clients have seen.
    pub(crate) shown: u64,
    /// True if the holder could not answer.
    pub(crate) mute: bool,
}

/// An answer to CB_GETATTR.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterReply {
    pub(crate) at: Duration,
    pub(crate) size: u64,
    pub(crate) change: u64,
    /// The change attribute that was reported to other clients for this answer.
    pub(crate) told: Option<u64>,
}

/// The delegations of a file, and the clients that may not get one for a while.
#[derive(Default)]
pub(crate) struct Delegations {
    held: Holders<Delegated>,
    rest: VecDeque<(ClientId, Duration)>,
}

/// Most clients of one file whose recent recall is stored. If there are more, no client gets a
/// delegation of the file for a while.
pub(crate) const RESTING_MAX: usize = 8;

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

    /// Returns a client other than `mine` whose delegation conflicts with `share`.
    pub(crate) fn conflict(&self, mine: Option<ClientId>, share: Share) -> Option<Holder> {
        let mut others = self.held.iter().filter(|(holder, _)| Some(holder.client) != mine);
        others.find(|(_, delegated)| delegated.stands_against(share)).map(|(holder, _)| holder)
    }

    /// Returns the kind of the strongest delegation.
    pub(crate) fn strongest(&self) -> Option<DelegationKind> {
        self.held.iter().map(|(_, delegated)| delegated.kind).max()
    }

    /// Makes `until` the latest end of the recalls that are under way.
    pub(crate) fn end_recalls_by(&mut self, until: Duration) {
        for recall in self.held.iter_mut().filter_map(|(_, delegated)| delegated.recall.as_mut()) {
            recall.until = Some(recall.until.map_or(until, |before| before.min(until)));
        }
    }

    /// Returns the delegation of a client.
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

    /// Returns whether a delegation of this client was recalled not long ago, or so many clients'
    /// were that no client should get one.
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

    /// Returns the clients that get no delegation for now, each with the time until which that is
    /// so.
    pub(crate) fn resting(&self) -> impl Iterator<Item = (ClientId, Duration)> {
        self.rest.iter().copied()
    }

    /// Forgets recalls that happened long ago.
    pub(crate) fn refresh(&mut self, now: Duration) {
        self.rest.retain(|(_, until)| *until > now);
    }
}

/// Returns whether a share conflicts with a read delegation: it writes, or denies reading.
const fn writes(share: Share) -> bool {
    share.access & Share::WRITE != 0 || share.deny & Share::READ != 0
}
