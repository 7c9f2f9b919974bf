//! The answer to the last CREATE_SESSION of a client (RFC 8881, 18.36.4).

use super::attrs::ChannelAttrs;
use crate::{Error, Result, SessionId};

/// The results of CREATE_SESSION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedSession {
    /// The new session.
    pub session: SessionId,
    /// The sequenceid of the request.
    pub sequenceid: u32,
    /// The attributes of the back channel; none if the connection carries no callbacks.
    pub back: Option<ChannelAttrs>,
    /// The attributes that were agreed on.
    pub fore: ChannelAttrs,
    /// The client's attributes of the back channel, limited to those the server uses.
    pub back_attrs: ChannelAttrs,
}

/// The slot of a client's CREATE_SESSION requests: the last request that was granted, and its
/// answer.
#[derive(Debug, Default)]
pub(crate) struct Creation {
    pub(crate) sequenceid: u32,
    pub(crate) answer: Option<CreatedSession>,
}

impl Creation {
    /// Returns the sequenceid that the next request must have.
    pub(crate) const fn expected(&self) -> u32 {
        self.sequenceid.wrapping_add(1)
    }

    /// Returns the kept answer if this request repeats the last one.
    pub(crate) fn replay(&self, sequenceid: u32) -> Result<Option<CreatedSession>> {
        match self.answer {
            Some(answer) if sequenceid == self.sequenceid => Ok(Some(answer)),
            _ if sequenceid == self.expected() => Ok(None),
            _ => Err(Error::SeqMisordered),
        }
    }
}
