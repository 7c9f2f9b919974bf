//! Messages to clients that the shell must send.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::table::lock;
use crate::{ByteRange, Client, FileKey, LockType, OffloadEnd, SequenceAnswer, SessionId, Stateid};

/// Something to be said to a client over its callback channel. The shell takes them from
/// [`crate::Engine::poll_effect`] and tells the engine how they went.
#[derive(Debug, Clone)]
pub enum Effect {
    /// CB_RECALL. Then [`crate::Engine::recall_sent`], from which on the deadline counts.
    Recall {
        /// The client that has the delegation.
        client: Arc<Client>,
        /// The delegation.
        stateid: Stateid,
        /// The file.
        file: FileKey,
        /// True if the file is about to be emptied, so that nothing need be written back.
        truncate: bool,
    },
    /// CB_NOTIFY_LOCK: the lock-owner may take the lock now that it waits for. Only for clients
    /// that have sessions; nothing hangs on it, for the client polls too (RFC 8881, 20.11). To a
    /// host of NLM it is NLM_GRANTED, for which the lock is taken first.
    NotifyLock {
        /// The client whose owner waits.
        client: Arc<Client>,
        /// The lock-owner.
        owner: Box<[u8]>,
        /// The file.
        file: FileKey,
        /// The bytes.
        range: ByteRange,
        /// Read or write.
        kind: LockType,
    },
    /// CB_GETATTR of size and change. Then [`crate::Engine::writer_attributes`].
    GetAttr {
        /// The holder of the write delegation.
        client: Arc<Client>,
        /// The file.
        file: FileKey,
    },
    /// CB_RECALL_ANY of delegations, for reading and for writing: only for clients that have
    /// sessions. Nothing hangs on it.
    RecallAny {
        /// The client that is to give some back.
        client: Arc<Client>,
        /// Number of delegations that it may keep.
        keep: u32,
    },
    /// CB_RECALL_SLOT over the session's own back channel; then [`crate::Engine::slots_recalled`].
    /// Nothing hangs on it: the client hears of it with its next SEQUENCE, too.
    RecallSlot {
        /// The client of the session.
        client: Arc<Client>,
        /// The session.
        session: SessionId,
        /// The highest slot the client should use.
        target: u32,
    },
    /// CB_OFFLOAD: a copy has ended. Then [`crate::Engine::forget_offload`].
    Offload {
        /// The client that asked for it.
        client: Arc<Client>,
        /// The stateid of the copy.
        stateid: Stateid,
        /// The file that is written.
        file: FileKey,
        /// The request that asked for it: a client that has not seen its answer yet is told so by
        /// this (RFC 8881, 2.10.6.3).
        asked_by: SequenceAnswer,
        /// Bytes that were copied.
        copied: u64,
        /// The end of the copy.
        end: OffloadEnd,
    },
    /// CB_NULL: a callback channel has been announced. Then [`crate::Engine::callbacks_work`] or
    /// [`crate::Engine::callbacks_fail`]. To a host of NLM it is NLM NULL, to find out whether it
    /// is still there; then [`crate::Engine::host_answered`].
    Probe {
        /// The client of the channel.
        client: Arc<Client>,
    },
}

/// Messages that the shell has not fetched yet. Their number is bounded: one recall and one
/// CB_GETATTR for a delegation, one notice for a waiter, one CB_OFFLOAD for a copy, one probe for a
/// confirmation or a silent host, one CB_RECALL_SLOT for a session in 10 s and one CB_RECALL_ANY
/// for a client in 5 s.
#[derive(Default)]
pub(crate) struct EffectQueue {
    effects: Mutex<VecDeque<Effect>>,
    waiting: AtomicUsize,
}

impl EffectQueue {
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
