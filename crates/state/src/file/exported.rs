//! The queue of a file and its delays as plain values, for a move to another engine.

use std::time::Duration;

use super::delegations::{Recall, Writer, WriterReply};
use crate::{ByteRange, ClientId, FileKey, LockType};

/// A file in whose queue owners wait, or with delays before it is delegated again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// The file, with the export through which it was first used.
    pub key: FileKey,
    /// True if it was opened through another export, too.
    pub by_many_exports: bool,
    /// Time for which no layout of it is given out.
    pub layout_rest: Duration,
    /// Clients that get no delegation of it for this time.
    pub resting: Vec<(ClientId, Duration)>,
    /// The owners that wait for locks, and those to which a free lock is offered, in their order.
    pub waits: Vec<ExportedWait>,
}

/// A lock that an owner waits for, or that is offered to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedWait {
    /// The client.
    pub client: ClientId,
    /// The lock-owner.
    pub owner: u32,
    /// The bytes.
    pub range: ByteRange,
    /// Read or write.
    pub kind: LockType,
    /// True if the lock is free and offered to the owner.
    pub offered: bool,
    /// Time since the owner began to wait, or since the offer.
    pub waited: Duration,
    /// Time after which the owner leaves the queue.
    pub left: Duration,
}

/// The recall of a delegation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRecall {
    /// Time since it began.
    pub queued: Duration,
    /// Time since CB_RECALL was sent.
    pub sent: Option<Duration>,
    /// Time until its latest end.
    pub left: Option<Duration>,
    /// The client that waits for it.
    pub wanted_by: Option<ClientId>,
}

/// The answers of the holder of a write delegation to CB_GETATTR. A CB_GETATTR that is under way is
/// sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedWriter {
    /// The last answer.
    pub said: Option<ExportedWriterReply>,
    /// The highest change attribute that other clients have seen.
    pub shown: u64,
    /// True if the holder could not answer.
    pub mute: bool,
}

/// An answer to CB_GETATTR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedWriterReply {
    /// Time since the answer.
    pub age: Duration,
    /// The size.
    pub size: u64,
    /// The change attribute.
    pub change: u64,
    /// The change attribute that was reported to other clients for this answer.
    pub told: Option<u64>,
}

impl Recall {
    pub(crate) fn exported(&self, now: Duration) -> ExportedRecall {
        let Self { queued, sent, until, wanted_by } = *self;
        ExportedRecall {
            queued: now.saturating_sub(queued),
            sent: sent.map(|sent| now.saturating_sub(sent)),
            left: until.map(|until| until.saturating_sub(now)),
            wanted_by,
        }
    }

    pub(crate) fn imported(now: Duration, recall: &ExportedRecall) -> Self {
        Self {
            queued: now.saturating_sub(recall.queued),
            sent: recall.sent.map(|sent| now.saturating_sub(sent)),
            until: recall.left.map(|left| now.saturating_add(left)),
            wanted_by: recall.wanted_by,
        }
    }
}

impl Writer {
    pub(crate) fn exported(&self, now: Duration) -> ExportedWriter {
        let Self { said, shown, mute, .. } = *self;
        let said = said.map(|WriterReply { at, size, change, told }| ExportedWriterReply {
            age: now.saturating_sub(at),
            size,
            change,
            told,
        });
        ExportedWriter { said, shown, mute }
    }

    pub(crate) fn imported(now: Duration, writer: &ExportedWriter) -> Self {
        let said = writer.said.as_ref().map(|reply| {
            let ExportedWriterReply { age, size, change, told } = *reply;
            WriterReply { at: now.saturating_sub(age), size, change, told }
        });
        Self { asked: None, said, shown: writer.shown, mute: writer.mute }
    }
}
