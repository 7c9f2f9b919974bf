//! Open-owners and lock-owners of a client.

use std::sync::Arc;
use std::time::Duration;

use crate::limits::OWNER_BYTES;
use crate::{Error, Principal, Result};

/// The kind of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnerKind {
    /// Opens.
    Open,
    /// Locks.
    Lock,
}

/// An open-owner or lock-owner of a client.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) kind: OwnerKind,
    pub(crate) name: Box<[u8]>,
    /// The principal that uses it.
    pub(crate) principal: Principal,
    /// Number of its states.
    pub(crate) states: u32,
    /// By which export it asked for a lock last.
    pub(crate) export: u32,
    /// True if OPEN_CONFIRM has been said, or need not be.
    pub(crate) confirmed: bool,
    /// The number of its last operation.
    pub(crate) seqid: u32,
    pub(crate) busy: bool,
    /// True if the last operation is done and may not be answered yet.
    pub(crate) unanswered: bool,
    pub(crate) last: Option<OwnerReply>,
    /// The state whose CLOSE was its last operation.
    pub(crate) closed: Option<u32>,
    pub(crate) used: Duration,
}

impl Owner {
    pub(crate) fn new(
        now: Duration,
        kind: OwnerKind,
        (name, principal): (&[u8], Principal),
        first: u32,
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            principal,
            states: 0,
            export: 0,
            confirmed: kind == OwnerKind::Lock,
            seqid: first.wrapping_sub(1),
            busy: false,
            unanswered: false,
            last: None,
            closed: None,
            used: now,
        }
    }

    /// An owner of minor version 1, whose operations the session keeps in order.
    pub(crate) fn sequenced(now: Duration, kind: OwnerKind, named: (&[u8], Principal)) -> Self {
        Self { confirmed: true, ..Self::new(now, kind, named, 1) }
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) const fn bytes(&self) -> usize {
        OWNER_BYTES + 2 * self.name.len()
    }

    /// It has asked for something, though it may not have got it.
    pub(crate) const fn seen(&mut self, now: Duration) {
        self.used = now;
    }

    /// Returns whether this is the next number.
    pub(crate) const fn is_next(&self, seqid: u32) -> bool {
        seqid == self.seqid.wrapping_add(1)
    }

    /// Counts an operation that was another owner's turn, too: the first LOCK of a lock-owner.
    pub(crate) const fn advance(&mut self, seqid: u32) {
        self.seqid = seqid;
    }

    /// Returns whether it has nothing, and has had nothing for so long that nothing is asked again.
    pub(crate) fn is_stale(&self, before: Duration) -> bool {
        self.states == 0 && !self.busy && self.used < before
    }

    pub(crate) fn begin(&mut self, now: Duration, seqid: u32) -> Result<Option<OwnerReply>> {
        if self.busy {
            return Err(Error::Delay);
        }
        self.used = now;
        if self.is_next(seqid) {
            self.busy = true;
            return Ok(None);
        }
        if self.unanswered {
            return Err(Error::Delay);
        }
        let last = self.last.clone().filter(|_| seqid == self.seqid);
        last.map(Some).ok_or(Error::BadSeqid)
    }
}

/// The answer to an owner's last operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerReply {
    /// The operation's result, from its status on.
    pub result: Arc<[u8]>,
    /// The current file handle it left, if it left another.
    pub handle: Option<Arc<[u8]>>,
}
