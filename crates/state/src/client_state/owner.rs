//! Open-owners and lock-owners of a client.

use std::sync::Arc;
use std::time::Duration;

use crate::limits::OWNER_BYTES;
use crate::{Error, Principal, Result};

/// The kind of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnerKind {
    /// An open-owner.
    Open,
    /// A lock-owner.
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
    /// The export through which it asked for its last lock.
    pub(crate) export: u32,
    /// True if OPEN_CONFIRM was received, or is not needed.
    pub(crate) confirmed: bool,
    /// The seqid of its last operation.
    pub(crate) seqid: u32,
    pub(crate) busy: bool,
    /// True if the last operation is done, but its reply may not be sent yet.
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

    /// Makes an owner of minor version 1 or 2, whose operations are ordered by the session.
    pub(crate) fn sequenced(now: Duration, kind: OwnerKind, named: (&[u8], Principal)) -> Self {
        Self { confirmed: true, ..Self::new(now, kind, named, 1) }
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) const fn bytes(&self) -> usize {
        OWNER_BYTES + 2 * self.name.len()
    }

    /// Notes the time of a request by this owner, even if the request is refused.
    pub(crate) const fn seen(&mut self, now: Duration) {
        self.used = now;
    }

    /// Returns whether this seqid follows the last one.
    pub(crate) const fn is_next(&self, seqid: u32) -> bool {
        seqid == self.seqid.wrapping_add(1)
    }

    /// Sets the seqid after an operation that another owner's seqid ordered: the first LOCK of a
    /// lock-owner.
    pub(crate) const fn advance(&mut self, seqid: u32) {
        self.seqid = seqid;
    }

    /// Returns whether it has no states and was not used since `before`, so that no retry is
    /// expected.
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

/// The result of an owner's last operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerReply {
    /// The operation's result, from its status on.
    pub result: Arc<[u8]>,
    /// The current filehandle after the operation, if the operation changed it.
    pub handle: Option<Arc<[u8]>>,
}
