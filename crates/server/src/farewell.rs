use std::io;
use std::net::SocketAddr;

use comity_rpc::{Hangup, RecordError};

use crate::quiet::Quiet;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Farewell {
    /// The peer closed it.
    #[error("closed by the peer")]
    Closed,
    /// It broke.
    #[error("connection broke: {0}")]
    Broken(io::Error),
    /// A file could not be sent; the reply it was part of had begun.
    #[error("a file could not be read while it was being sent: {0}")]
    File(io::Error),
    /// Records cannot be told apart any more.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The peer does not speak RPC.
    #[error(transparent)]
    NoRpc(#[from] Hangup),
    /// The first byte did not come in time.
    #[error("nothing was sent within {0} s of connecting")]
    Mute(u32),
    /// A record was begun and not finished in time.
    #[error("a record was not complete after {0} s")]
    Slow(u32),
    /// Replies wait and none of them is read.
    #[error("no reply was read for {0} s")]
    Unread(u32),
    /// Nothing was said for long.
    #[error("idle for {0} s")]
    Idle(u32),
    /// All memory for incomplete records and unread replies is taken.
    #[error("the memory for incomplete records and unread replies is used up")]
    Memory,
    /// The server stops.
    #[error("the server stops")]
    Drained,
}

static LOG: Quiet = Quiet::new();

impl Farewell {
    /// Logs the end of the connection to `peer`; what is not the ordinary end, a few lines a second.
    pub(crate) fn log(&self, peer: SocketAddr) {
        match self {
            Self::Closed | Self::Idle(_) | Self::Drained | Self::Broken(_) => {
                tracing::debug!(%peer, reason = %self, "connection ends");
            }
            _ => LOG.say(|suppressed| {
                tracing::warn!(%peer, reason = %self, suppressed, "connection ended");
            }),
        }
    }

    /// Under which name it is counted.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Broken(_) => "broken",
            Self::File(_) => "file",
            Self::Record(_) => "record",
            Self::NoRpc(_) => "no_rpc",
            Self::Mute(_) => "mute",
            Self::Slow(_) => "slow",
            Self::Unread(_) => "unread",
            Self::Idle(_) => "idle",
            Self::Memory => "memory",
            Self::Drained => "drained",
        }
    }
}
