//! The attributes that both sides agree on for a channel (RFC 8881, 18.36.3).

use crate::limits::{
    BACK_SLOTS_MAX, CACHED_REPLY_BYTES_MAX, OPERATIONS_MAX, REPLY_BYTES_MIN, SLOTS_START,
};
use crate::{Error, Result};

/// Attributes of a channel that both sides agree on (`channel_attrs4`; RFC 8881, 18.36.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelAttrs {
    /// Longest request, in bytes from the RPC header on.
    pub request_bytes_max: u32,
    /// Longest reply.
    pub response_bytes_max: u32,
    /// Longest reply that is kept for a retry.
    pub response_cached_bytes_max: u32,
    /// Most operations of one COMPOUND.
    pub operations_max: u32,
    /// Most requests at once: slots.
    pub requests_max: u32,
}

/// A back channel: its attributes, and the credentials that the server must use there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackChannel {
    /// The attributes that were agreed on.
    pub attrs: ChannelAttrs,
    /// The minor version of the session. Clients do not recognize a callback of another minor
    /// version.
    pub minor: u32,
    /// The RPC program of the client's callbacks.
    pub program: u32,
    /// Credentials that the client accepts, in its order of preference.
    pub security: Box<[CallbackSecurity]>,
}

/// A credential of callbacks (`callback_sec_parms4`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackSecurity {
    /// AUTH_NONE.
    None,
    /// AUTH_SYS. The server must use exactly these values: the client recognizes the server by
    /// them.
    Sys {
        /// The machine's name.
        machine: Box<[u8]>,
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
        /// Further groups.
        gids: Box<[u32]>,
    },
}

impl ChannelAttrs {
    /// Returns the attributes that the client asks for, limited to those the server supports.
    pub(crate) fn fore(self, bytes_max: u32) -> Result<Self> {
        let agreed = Self {
            request_bytes_max: self.request_bytes_max.min(bytes_max),
            response_bytes_max: self.response_bytes_max.min(bytes_max),
            response_cached_bytes_max: self.response_cached_bytes_max.min(CACHED_REPLY_BYTES_MAX),
            operations_max: self.operations_max.clamp(1, OPERATIONS_MAX),
            requests_max: self.requests_max.clamp(1, SLOTS_START),
        };
        agreed.large_enough()
    }

    /// Returns the attributes of the back channel: the client's, with only the number of slots
    /// limited.
    pub(crate) fn back(self) -> Result<Self> {
        let requests_max = self.requests_max.clamp(1, BACK_SLOTS_MAX);
        Self { requests_max, operations_max: self.operations_max, ..self }.large_enough()
    }

    fn large_enough(self) -> Result<Self> {
        let least = self.request_bytes_max.min(self.response_bytes_max);
        if least < REPLY_BYTES_MIN { Err(Error::Toosmall) } else { Ok(self) }
    }
}
