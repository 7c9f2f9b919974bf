//! Arguments and results of SEQUENCE (RFC 8881, 18.46).

use std::ops::BitOr;

use super::attrs::ChannelAttrs;
use crate::{ConnectionId, Error, Origin, Result, SessionId};

/// The arguments of SEQUENCE, and the facts by which a retry of its request is recognized.
#[derive(Debug, Clone, Copy)]
pub struct Sequence {
    /// The session.
    pub session: SessionId,
    /// The sequenceid of the request in its slot.
    pub seqid: u32,
    /// The slot.
    pub slot: u32,
    /// The highest slot in use.
    pub highest_slot: u32,
    /// True if the answer must be kept.
    pub cache_this: bool,
    /// Number of operations in the COMPOUND, SEQUENCE included.
    pub operations: u32,
    /// Length of the request in bytes, from the RPC header on.
    pub request_bytes: usize,
    /// A hash of the caller and the whole COMPOUND, which tells a retry from another request.
    pub digest: u64,
    /// The connection on which it came.
    pub connection: ConnectionId,
    /// The origin of that connection.
    pub origin: Origin,
}

/// The results of SEQUENCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceAnswer {
    /// The session.
    pub session: SessionId,
    /// The sequenceid of the request in its slot.
    pub seqid: u32,
    /// The slot.
    pub slot: u32,
    /// The highest slot of the session.
    pub highest_slot: u32,
    /// The highest slot the client should use.
    pub target_highest_slot: u32,
    /// Status flags of the client's state.
    pub status: StatusFlags,
}

/// `sr_status_flags` (RFC 8881, 18.46.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusFlags(pub u32);

impl StatusFlags {
    /// No back channel of the client works.
    pub const CB_PATH_DOWN: Self = Self(0x1);
    /// All state was revoked when the lease expired.
    pub const EXPIRED_ALL_STATE_REVOKED: Self = Self(0x8);
    /// An administrator revoked some state.
    pub const ADMIN_STATE_REVOKED: Self = Self(0x20);
    /// A delegation was revoked, and the client has not freed its stateid yet.
    pub const RECALLABLE_STATE_REVOKED: Self = Self(0x40);
    /// The lease of some state is at another server (RFC 8881, 18.46.3).
    pub const LEASE_MOVED: Self = Self(0x80);
    /// The session has no back channel that works.
    pub const CB_PATH_DOWN_SESSION: Self = Self(0x200);
    /// Something is wrong with the back channel.
    pub const BACKCHANNEL_FAULT: Self = Self(0x400);

    /// Returns whether all of these flags are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns the flags without these.
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    pub(crate) fn when(self, holds: bool) -> Self {
        if holds { self } else { Self::default() }
    }
}

impl BitOr for StatusFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Sequence {
    pub(crate) fn keep_to(&self, agreed: &ChannelAttrs) -> Result<()> {
        if self.request_bytes > agreed.request_bytes_max as usize {
            return Err(Error::ReqTooBig);
        }
        if self.operations > agreed.operations_max { Err(Error::TooManyOps) } else { Ok(()) }
    }
}
