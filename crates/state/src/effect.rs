//! Messages to clients that the shell must send.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::table::lock;
use crate::{
    ByteRange, Client, FileKey, LockType, NoticeBatch, NoticeWishes, OffloadEnd, SequenceAnswer,
    SessionId, Stateid,
};

/// A message to a client over its callback channel. The shell takes messages from
/// [`crate::Engine::poll_effect`], sends them, and reports the outcome to the engine.
#[derive(Debug, Clone)]
pub enum Effect {
    /// CB_RECALL. The shell reports that it was sent by [`crate::Engine::recall_sent`]; the
    /// deadline counts from there.
    Recall {
        /// The client that has the delegation.
        client: Arc<Client>,
        /// The delegation.
        stateid: Stateid,
        /// The file.
        file: FileKey,
        /// True if the file is about to be truncated to zero, so that the client need not write
        /// data back.
        truncate: bool,
    },
    /// CB_LAYOUTRECALL of a whole file, for clients with sessions. The shell reports that it was
    /// sent by [`crate::Engine::layout_recall_sent`], and a client that does not know the layout by
    /// [`crate::Engine::layout_forgotten`].
    RecallLayout {
        /// The client that has the layout.
        client: Arc<Client>,
        /// The layout. Its seqid counts the recall.
        stateid: Stateid,
        /// The file.
        file: FileKey,
    },
    /// CB_NOTIFY_LOCK for clients with sessions: the lock that the lock-owner waits for is free. It
    /// may be lost, since clients also poll (RFC 8881, 20.11). For a host of NLM it is NLM_GRANTED;
    /// the lock is taken for the host before it is sent.
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
    /// CB_NOTIFY of changes in a delegated directory. The shell reports the answer by
    /// [`crate::Engine::notices_answered`].
    Notify {
        /// The client that has the delegation.
        client: Arc<Client>,
        /// The delegation.
        stateid: Stateid,
        /// The directory.
        directory: FileKey,
        /// The parts of the notifications that the client wants.
        wishes: NoticeWishes,
        /// The notifications.
        batch: NoticeBatch,
    },
    /// CB_GETATTR of size and change attribute. The shell reports the answer by
    /// [`crate::Engine::writer_attributes`].
    GetAttr {
        /// The holder of the write delegation.
        client: Arc<Client>,
        /// The file.
        file: FileKey,
    },
    /// CB_RECALL_ANY of delegations, only for clients with sessions. It may be lost.
    RecallAny {
        /// The client that should return delegations.
        client: Arc<Client>,
        /// Number of delegations that it may keep.
        keep: u32,
        /// True if it has delegations of directories, so that these count, too.
        directories: bool,
    },
    /// CB_RECALL_SLOT over the session's own back channel. The shell reports it by
    /// [`crate::Engine::slots_recalled`]. It may be lost: the next reply to SEQUENCE contains the
    /// target, too.
    RecallSlot {
        /// The client of the session.
        client: Arc<Client>,
        /// The session.
        session: SessionId,
        /// The highest slot the client should use.
        target: u32,
    },
    /// CB_OFFLOAD: a copy has ended. The shell reports it by [`crate::Engine::forget_offload`].
    Offload {
        /// The client that asked for it.
        client: Arc<Client>,
        /// The stateid of the copy.
        stateid: Stateid,
        /// The file that is written.
        file: FileKey,
        /// The request for the copy. CB_OFFLOAD names it as a referring call, in case the client
        /// has not received its reply yet (RFC 8881, 2.10.6.3).
        asked_by: SequenceAnswer,
        /// Number of bytes copied.
        copied: u64,
        /// The result of the copy.
        end: OffloadEnd,
    },
    /// CB_NULL, the probe of a new callback channel. The shell reports the outcome by
    /// [`crate::Engine::callbacks_work`] or [`crate::Engine::callbacks_fail`]. For a host of NLM it
    /// is NLM NULL, which checks that the host still answers; the shell then calls
    /// [`crate::Engine::host_answered`].
    Probe {
        /// The client of the channel.
        client: Arc<Client>,
    },
}

impl Effect {
    /// Returns the file that it is about, if it is about one.
    const fn file(&self) -> Option<&FileKey> {
        match self {
            Self::Recall { file, .. }
            | Self::RecallLayout { file, .. }
            | Self::NotifyLock { file, .. }
            | Self::Notify { directory: file, .. }
            | Self::GetAttr { file, .. }
            | Self::Offload { file, .. } => Some(file),
            Self::RecallAny { .. } | Self::RecallSlot { .. } | Self::Probe { .. } => None,
        }
    }
}

/// Messages that the shell has not taken yet. Their number is bounded: one recall for a layout, one
/// recall, one CB_NOTIFY and one CB_GETATTR for a delegation, one CB_NOTIFY_LOCK for a waiting
/// owner, one CB_OFFLOAD for a copy, one probe for a confirmation or a silent host, one
/// CB_RECALL_SLOT for a session in 10 s and one CB_RECALL_ANY for a client in 5 s.
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

    /// Drops the messages about these files.
    pub(crate) fn drop_about(&self, is_meant: impl Fn(&FileKey) -> bool) {
        let mut effects = lock(&self.effects);
        effects.retain(|effect| effect.file().is_none_or(|file| !is_meant(file)));
        self.waiting.store(effects.len(), Ordering::Release);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }
}
