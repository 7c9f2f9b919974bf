use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_credential::ChannelKind;

/// The reasons for which connections end, by their index in the counters; see `CloseReason`.
pub(crate) const CLOSE_REASONS: [&str; 16] = [
    "closed",
    "broken",
    "file",
    "record",
    "no_rpc",
    "mute",
    "slow",
    "unread",
    "idle",
    "memory",
    "drained",
    "handshake",
    "handshake_slow",
    "early_bytes",
    "tls",
    "expired",
];

const REASONS: usize = CLOSE_REASONS.len();

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the number.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Returns the number.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of one event loop, in their own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LoopCounters {
    pub(crate) waits: Counter,
    pub(crate) receives: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sends: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) records: Counter,
    pub(crate) lates: Counter,
    pub(crate) late_rounds: Counter,
    pub(crate) hand_overs: Counter,
    pub(crate) backlogs: Counter,
    pub(crate) panics: Counter,
    /// Handshakes that finished without and with a certificate of the peer.
    pub(crate) handshakes: [Counter; 2],
    /// Connections that ended, by reason.
    pub(crate) ended: [Counter; REASONS],
}

impl LoopCounters {
    /// Counts a finished handshake.
    pub(crate) fn handshaken(&self, kind: ChannelKind) {
        let [anonymous, mutual] = &self.handshakes;
        let count = if kind == ChannelKind::MutualTls { mutual } else { anonymous };
        count.add(1);
    }
}

/// Counters of the whole server since it started, and its present use of resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Number of waits for readiness.
    pub waits: u64,
    /// Receiving system calls.
    pub receives: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Number of sends of batches of replies.
    pub sends: u64,
    /// Bytes sent or queued to be sent.
    pub sent_bytes: u64,
    /// Records answered.
    pub records: u64,
    /// Calls with a slow half that was executed later.
    pub lates: u64,
    /// Number of rounds of slow halves; each round executes all that are pending.
    pub late_rounds: u64,
    /// Number of times that an event loop went to another thread because a call was about to sleep.
    pub hand_overs: u64,
    /// Number of times that replies had to wait for a peer that did not read.
    pub backlogs: u64,
    /// Panics of programs that were caught.
    pub panics: u64,
    /// Calls that were sent again and not executed twice.
    pub replayed: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused.
    pub refused: u64,
    /// Connections open now.
    pub connections: u64,
    /// Open connections by their channel, in the order of [`ChannelKind::ALL`].
    pub by_channel: [u64; 3],
    /// Handshakes that finished without and with a certificate of the peer.
    pub handshakes: [u64; 2],
    /// Bytes held for peers now.
    pub buffered_bytes: u64,
    /// Threads that serve now, including those that wait.
    pub threads: u64,
    pub(crate) ended: [u64; REASONS],
}

/// Counters of one address with connections, since the oldest connection that is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerStats {
    /// The address (IPv6: its /64).
    pub address: IpAddr,
    /// Connections open now.
    pub connections: u64,
    /// Records received.
    pub records: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent or queued to be sent.
    pub sent_bytes: u64,
    /// The time that calls took, in nanoseconds; 0 if calls are not measured.
    pub service_nanoseconds: u64,
}

impl ServerStats {
    /// Returns the number of connections that ended, by reason.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CLOSE_REASONS.into_iter().zip(self.ended)
    }

    /// Adds the counters of an event loop.
    pub(crate) fn add(&mut self, event_loop: &LoopCounters) {
        self.waits += event_loop.waits.get();
        self.receives += event_loop.receives.get();
        self.received_bytes += event_loop.received_bytes.get();
        self.sends += event_loop.sends.get();
        self.sent_bytes += event_loop.sent_bytes.get();
        self.records += event_loop.records.get();
        self.lates += event_loop.lates.get();
        self.late_rounds += event_loop.late_rounds.get();
        self.hand_overs += event_loop.hand_overs.get();
        self.backlogs += event_loop.backlogs.get();
        self.panics += event_loop.panics.get();
        for (sum, count) in self.handshakes.iter_mut().zip(&event_loop.handshakes) {
            *sum += count.get();
        }
        for (sum, count) in self.ended.iter_mut().zip(&event_loop.ended) {
            *sum += count.get();
        }
    }
}
