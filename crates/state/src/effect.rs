//! What must go out: to clients, and to stable storage.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::table::lock;
use crate::{
    ByteRange, Client, Desk, FileKey, LockType, OffloadEnd, Origin, Principal, SequenceAnswer,
    SessionId, Stateid, Verifier,
};

/// Something to be said to a client over its callback channel. The shell takes them from
/// [`crate::Engine::poll_effect`] and tells the engine how they went.
#[derive(Debug, Clone)]
pub enum Effect {
    /// CB_RECALL. Then [`crate::Engine::recall_sent`], from which on the deadline counts.
    Recall {
        /// Whose delegation.
        client: Arc<Client>,
        /// Which.
        stateid: Stateid,
        /// Of which file.
        file: FileKey,
        /// Whether the file is about to be emptied: nothing need be written back.
        truncate: bool,
    },
    /// CB_NOTIFY_LOCK: the lock-owner may lock now what it waits for. Only for clients that have
    /// sessions; nothing hangs on it, for the client polls too (RFC 8881, 20.11). To a host of NLM
    /// it is NLM_GRANTED, for which the lock is taken first.
    NotifyLock {
        /// Whose turn it is.
        client: Arc<Client>,
        /// The lock-owner.
        owner: Box<[u8]>,
        /// In which file.
        file: FileKey,
        /// Which bytes.
        range: ByteRange,
        /// Shared or alone.
        kind: LockType,
    },
    /// CB_GETATTR of size and change. Then [`crate::Engine::writer_attributes`].
    GetAttr {
        /// Who holds the write delegation.
        client: Arc<Client>,
        /// Of which file.
        file: FileKey,
    },
    /// CB_RECALL_ANY of delegations, for reading and for writing: only for clients that have
    /// sessions. Nothing hangs on it.
    RecallAny {
        /// Who is to give some back.
        client: Arc<Client>,
        /// How many it may keep.
        keep: u32,
    },
    /// CB_RECALL_SLOT over the session's own back channel; then [`crate::Engine::slots_recalled`].
    /// Nothing hangs on it: the client hears of it with its next SEQUENCE, too.
    RecallSlot {
        /// Whose session.
        client: Arc<Client>,
        /// Which.
        session: SessionId,
        /// The highest slot the client should use.
        target: u32,
    },
    /// CB_OFFLOAD: a copy has ended. Then [`crate::Engine::forget_offload`].
    Offload {
        /// Who asked for it.
        client: Arc<Client>,
        /// Which copy.
        stateid: Stateid,
        /// Into which file.
        file: FileKey,
        /// The request that asked for it: a client that has not seen its answer yet is told so by
        /// this (RFC 8881, 2.10.6.3).
        asked_by: SequenceAnswer,
        /// Bytes that were copied.
        copied: u64,
        /// How it ended.
        end: OffloadEnd,
    },
    /// CB_NULL: a callback channel has been announced. Then [`crate::Engine::callbacks_work`] or
    /// [`crate::Engine::callbacks_fail`]. To a host of NLM it is NLM NULL, to find out whether it
    /// is still there; then [`crate::Engine::host_answered`].
    Probe {
        /// Whose.
        client: Arc<Client>,
    },
}

/// Effects that nobody has fetched yet. They are bounded by what they are about: one recall and one
/// CB_GETATTR for a delegation, one notice for a waiter, one word for a copy, one probe for a
/// confirmation or a silent host, and in some seconds one CB_RECALL_SLOT for a session and one
/// CB_RECALL_ANY for a client.
#[derive(Default)]
pub(crate) struct Outbox {
    effects: Mutex<VecDeque<Effect>>,
    waiting: AtomicUsize,
}

impl Outbox {
    pub(crate) fn push(&self, effect: Effect) {
        let mut effects = lock(&self.effects);
        effects.push_back(effect);
        self.waiting.store(effects.len(), Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<Effect> {
        if self.is_empty() {
            return None;
        }
        let mut effects = lock(&self.effects);
        let effect = effects.pop_front();
        self.waiting.store(effects.len(), Ordering::Release);
        effect
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }
}

/// A client as stable storage remembers it: its name, at which desk.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordedClient {
    /// At which desk it came.
    pub desk: Desk,
    /// Its owner id.
    pub id: Box<[u8]>,
}

/// By what a client is known again after a restart of the server: a reclaim is let in only from the
/// same principal, and only from where the client was or by the same instance of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Who introduced it.
    pub principal: Principal,
    /// From where.
    pub origin: Origin,
    /// Its instance.
    pub verifier: Verifier,
}

impl Identity {
    /// Whether another may be the same client, which has moved or has started anew, but not both.
    #[must_use]
    pub fn is_again(&self, other: &Self) -> bool {
        let here = self.origin == other.origin;
        if self.principal == other.principal {
            return here || self.verifier == other.verifier;
        }
        here && other.principal == Principal::SYSTEM
    }
}

/// One change of what must outlive a restart. Applied in order they make a set of clients, each
/// with the files whose state it lost: what [`crate::Recovered`] is made of.
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
pub struct Mark(pub u64);

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

    /// Takes what has to be stored, and the mark to be acknowledged when it is.
    pub(crate) fn take(&self, into: &mut Vec<Record>) -> Mark {
        let mut queue = lock(&self.queue);
        into.append(&mut queue);
        Mark(self.written.load(Ordering::Acquire))
    }

    pub(crate) fn acknowledge(&self, Mark(mark): Mark) {
        self.stored.fetch_max(mark, Ordering::AcqRel);
    }

    pub(crate) fn is_stored(&self, Mark(mark): Mark) -> bool {
        self.stored.load(Ordering::Acquire) >= mark
    }

    pub(crate) fn unstored(&self) -> Option<Mark> {
        let mark = Mark(self.written.load(Ordering::Acquire));
        (!self.is_stored(mark)).then_some(mark)
    }
}
