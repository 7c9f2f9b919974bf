//! Sessions as plain values, for a move to another engine.

use std::sync::Arc;
use std::time::Duration;

use super::attrs::{BackChannel, ChannelAttrs};
use super::request::SequenceAnswer;
use crate::SessionId;

/// A session without its connections, which the client binds again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedSession {
    /// Its sessionid.
    pub id: SessionId,
    /// Time since it was made.
    pub age: Duration,
    /// Attributes of the fore channel.
    pub fore: ChannelAttrs,
    /// The back channel, if there is one.
    pub back: Option<BackChannel>,
    /// The most slots that the client asked for.
    pub slots_max: u32,
    /// Its slots.
    pub slots: Vec<ExportedSlot>,
}

/// A slot of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedSlot {
    /// The seqid of its last request.
    pub seqid: u32,
    /// The hash by which a retry of that request is recognized.
    pub digest: u64,
    /// The reply that is kept for a retry.
    pub reply: ExportedReply,
}

/// The reply that a slot keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportedReply {
    /// No request was answered yet.
    None,
    /// The whole reply.
    Whole(Arc<[u8]>),
    /// Only the result of SEQUENCE.
    Sequence(SequenceAnswer),
}
