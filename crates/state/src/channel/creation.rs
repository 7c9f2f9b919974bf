//! The answer to the last CREATE_SESSION of a client (RFC 8881, 18.36.4).

use super::attrs::ChannelAttrs;
use crate::{Error, Result, SessionId};

/// The results of CREATE_SESSION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedSession {
    /// The new session.
    pub session: SessionId,
    /// The request's own sequence.
    pub sequenceid: u32,
    /// True if the connection carries callbacks.
    pub back: Option<ChannelAttrs>,
    /// The attributes that were agreed on.
    pub fore: ChannelAttrs,
    /// The client's attributes of the back channel, limited to those the server uses.
    pub back_attrs: ChannelAttrs,
}

/// The slot of a client's CREATE_SESSIONs: the last that was granted, and its answer.
#[derive(Debug, Default)]
pub(crate) struct Creation {
    pub(crate) sequenceid: u32,
    pub(crate) answer: Option<CreatedSession>,
}

impl Creation {
    /// Returns the sequence that the next request must have.
    pub(crate) const fn expected(&self) -> u32 {
        self.sequenceid.wrapping_add(1)
    }

    /// The answer of the last one, if this is it again.
    pub(crate) fn replay(&self, sequenceid: u32) -> Result<Option<CreatedSession>> {
        match self.answer {
            Some(answer) if sequenceid == self.sequenceid => Ok(Some(answer)),
            _ if sequenceid == self.expected() => Ok(None),
            _ => Err(Error::SeqMisordered),
        }
    }
}
