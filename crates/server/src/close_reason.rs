use std::io;
use std::net::SocketAddr;

use comity_rpc::{Hangup, RecordError};
use comity_tls::{HandshakeError, TlsError};
use rustix::io::Errno;

use crate::counters::LoopCounters;
use crate::log_rate_limit::LogRateLimit;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloseReason {
    /// The peer closed it.
    #[error("closed by the peer")]
    Closed,
    /// The connection failed.
    #[error("connection broke: {0}")]
    Broken(io::Error),
    /// A file could not be sent, after part of its reply had been sent.
    #[error("a file could not be read while it was being sent: {0}")]
    File(io::Error),
    /// The stream cannot be split into records any more.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The peer does not send RPC messages.
    #[error(transparent)]
    NoRpc(#[from] Hangup),
    /// The first byte did not come in time.
    #[error("nothing was sent within {0} s of connecting")]
    Mute(u32),
    /// A record was not completed in time.
    #[error("a record was not complete after {0} s")]
    Slow(u32),
    /// The peer reads none of the replies that wait for it.
    #[error("no reply was read for {0} s")]
    Unread(u32),
    /// The TLS handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Handshake(HandshakeError),
    /// The TLS handshake did not finish in time.
    #[error("the TLS handshake was not complete after {0} s")]
    HandshakeSlow(u32),
    /// Data in clear followed the probe for TLS, or calls before it were not answered yet.
    #[error(
        "the peer asked for TLS and went on without waiting for it: somebody may have put bytes \
         into the connection"
    )]
    EarlyBytes,
    /// The peer broke the rules of TLS.
    #[error("TLS: {0}")]
    Tls(TlsError),
    /// The certificate of the peer has expired since the handshake.
    #[error("the peer's certificate has expired: renew it on the client")]
    Expired,
    /// The connection was idle for too long.
    #[error("idle for {0} s")]
    Idle(u32),
    /// The memory for incomplete records and unread replies is used up.
    #[error("the memory for incomplete records and unread replies is used up")]
    Memory,
    /// The server stops.
    #[error("the server stops")]
    Drained,
}

/// A transport failed.
impl From<Errno> for CloseReason {
    fn from(error: Errno) -> Self {
        match error {
            // There is no memory for bytes that the socket does not take.
            Errno::NOBUFS => Self::Memory,
            error => Self::Broken(error.into()),
        }
    }
}

static LOG: LogRateLimit = LogRateLimit::new();

impl CloseReason {
    /// Counts the end of the connection to `peer` and logs it; of unusual ends, at most a few lines
    /// a second.
    pub(crate) fn tell(&self, peer: SocketAddr, counters: &LoopCounters) {
        if let Some(count) = counters.ended.get(self.reason()) {
            count.add(1);
        }
        match self {
            Self::Closed | Self::Idle(_) | Self::Drained | Self::Broken(_) => {
                tracing::debug!(%peer, reason = %self, "connection ends");
            }
            _ => LOG.say(|suppressed| {
                tracing::warn!(%peer, reason = %self, suppressed, "connection ended");
            }),
        }
    }

    /// Returns its index in the names of the reasons, which the counters keep.
    const fn reason(&self) -> usize {
        match self {
            Self::Closed => 0,
            Self::Broken(_) => 1,
            Self::File(_) => 2,
            Self::Record(_) => 3,
            Self::NoRpc(_) => 4,
            Self::Mute(_) => 5,
            Self::Slow(_) => 6,
            Self::Unread(_) => 7,
            Self::Idle(_) => 8,
            Self::Memory => 9,
            Self::Drained => 10,
            Self::Handshake(_) => 11,
            Self::HandshakeSlow(_) => 12,
            Self::EarlyBytes => 13,
            Self::Tls(_) => 14,
            Self::Expired => 15,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::CLOSE_REASONS;

    /// Every reason that can be made here, with the name of its counter.
    fn reasons() -> Vec<(CloseReason, &'static str)> {
        let broken = || io::Error::from(io::ErrorKind::ConnectionReset);
        vec![
            (CloseReason::Closed, "closed"),
            (CloseReason::Broken(broken()), "broken"),
            (CloseReason::File(broken()), "file"),
            (RecordError::TooManyFragments.into(), "record"),
            (CloseReason::Mute(1), "mute"),
            (CloseReason::Slow(1), "slow"),
            (CloseReason::Unread(1), "unread"),
            (CloseReason::Idle(1), "idle"),
            (CloseReason::Memory, "memory"),
            (CloseReason::Drained, "drained"),
            (CloseReason::Handshake(HandshakeError::Long), "handshake"),
            (CloseReason::HandshakeSlow(1), "handshake_slow"),
            (CloseReason::EarlyBytes, "early_bytes"),
            (CloseReason::Expired, "expired"),
        ]
    }

    #[test]
    fn every_reason_is_counted_under_its_name_and_no_other() {
        let peer = "10.0.0.1:700".parse().unwrap();
        for (reason, name) in reasons() {
            let counters = LoopCounters::default();
            reason.tell(peer, &counters);
            let counted = CLOSE_REASONS.iter().zip(&counters.ended);
            let counted: Vec<_> =
                counted.filter(|(_, count)| count.get() > 0).map(|(name, _)| *name).collect();
            assert_eq!(counted, [name], "{reason}");
        }
    }

    #[test]
    fn a_transport_without_memory_is_no_broken_connection() {
        assert!(matches!(CloseReason::from(Errno::NOBUFS), CloseReason::Memory));
        assert!(matches!(CloseReason::from(Errno::CONNRESET), CloseReason::Broken(_)));
    }
}
