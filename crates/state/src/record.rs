//! Records of who may reclaim what, on their way to stable storage.

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::lock;
use crate::{ClientProtocol, FileKey, Origin, Principal, Verifier};

/// A client as stable storage remembers it: its protocol and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordedClient {
    /// The protocol by which it introduced itself.
    pub protocol: ClientProtocol,
    /// Its owner id.
    pub id: Box<[u8]>,
}

/// The identity of a client across restarts of the server: a reclaim is accepted only from the same
/// principal, and only from the same origin or by the same instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The principal that introduced it.
    pub principal: Principal,
    /// The origin.
    pub origin: Origin,
    /// Its instance.
    pub verifier: Verifier,
}

impl Identity {
    /// Returns whether `other` may be the same client, which may have moved or restarted, but not
    /// both.
    #[must_use]
    pub fn is_again(&self, other: &Self) -> bool {
        let here = self.origin == other.origin;
        if self.principal == other.principal {
            return here || self.verifier == other.verifier;
        }
        here && other.principal == Principal::SYSTEM
    }
}

/// One change of the state that must outlive a restart. Applied in order they make a set of
/// clients, each with the files of which it lost its state: a [`crate::Recovered`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The client may have state, and may reclaim it after a restart. One with sessions says by
    /// what leads to this (RECLAIM_COMPLETE, FREE_STATEID of the last that was revoked) that it
    /// knows what it has lost: what was revoked before is no hindrance any more.
    Client(RecordedClient, Option<Identity>),
    /// The client must not reclaim anything: it is gone, lost its lease, or did not come back in
    /// grace (RFC 8881, 8.4.2.1).
    Forget(RecordedClient),
    /// The client's state of this file was revoked, and must not be reclaimed.
    Revoked(RecordedClient, FileKey),
}

/// A place in the sequence of records: all that came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalPosition(pub u64);

/// Records on their way to stable storage.
#[derive(Default)]
pub(crate) struct Journal {
    queue: Mutex<Vec<Record>>,
    written: AtomicU64,
    stored: AtomicU64,
}

impl Journal {
    pub(crate) fn append(&self, record: Record) {
        let mut queue = lock(&self.queue);
        queue.push(record);
        self.written.fetch_add(1, Ordering::Release);
    }

    /// Takes the records to store; returns the position to be acknowledged afterwards.
    pub(crate) fn take(&self, into: &mut Vec<Record>) -> JournalPosition {
        let mut queue = lock(&self.queue);
        into.append(&mut queue);
        JournalPosition(self.written.load(Ordering::Acquire))
    }

    pub(crate) fn acknowledge(&self, JournalPosition(position): JournalPosition) {
        self.stored.fetch_max(position, Ordering::AcqRel);
    }

    pub(crate) fn is_stored(&self, JournalPosition(position): JournalPosition) -> bool {
        self.stored.load(Ordering::Acquire) >= position
    }

    pub(crate) fn unstored(&self) -> Option<JournalPosition> {
        let position = JournalPosition(self.written.load(Ordering::Acquire));
        (!self.is_stored(position)).then_some(position)
    }
}
