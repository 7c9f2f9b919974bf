use std::sync::atomic::{AtomicU64, Ordering};

use crate::farewell::Farewell;

const REASONS: usize = Farewell::REASONS.len();

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Its value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one desk did, in its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct DeskCounters {
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
    /// By reason.
    pub(crate) ended: [Counter; REASONS],
}

/// What the whole shell did since it started, and what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShellNumbers {
    /// Waits for readiness.
    pub waits: u64,
    /// Receiving system calls.
    pub receives: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Sends of batches of replies.
    pub sends: u64,
    /// Bytes sent or left to be sent.
    pub sent_bytes: u64,
    /// Records answered.
    pub records: u64,
    /// Calls of which a slow half was done later.
    pub lates: u64,
    /// Times slow halves were done, for all that waited together.
    pub late_rounds: u64,
    /// Times a desk went to another thread because a call was to sleep.
    pub hand_overs: u64,
    /// Times replies had to wait for a peer that did not read.
    pub backlogs: u64,
    /// Panics of programs that were caught.
    pub panics: u64,
    /// Calls that were sent again and not done twice.
    pub replayed: u64,
    /// Connections let in.
    pub accepted: u64,
    /// Connections turned away.
    pub refused: u64,
    /// Connections open now.
    pub connections: u64,
    /// Bytes held for peers now.
    pub buffered_bytes: u64,
    /// Threads that serve now, waiting ones among them.
    pub threads: u64,
    pub(crate) ended: [u64; REASONS],
}

impl ShellNumbers {
    /// Connections that ended, by reason.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Farewell::REASONS.into_iter().zip(self.ended)
    }

    /// Adds what a desk did.
    pub(crate) fn add(&mut self, desk: &DeskCounters) {
        self.waits += desk.waits.get();
        self.receives += desk.receives.get();
        self.received_bytes += desk.received_bytes.get();
        self.sends += desk.sends.get();
        self.sent_bytes += desk.sent_bytes.get();
        self.records += desk.records.get();
        self.lates += desk.lates.get();
        self.late_rounds += desk.late_rounds.get();
        self.hand_overs += desk.hand_overs.get();
        self.backlogs += desk.backlogs.get();
        self.panics += desk.panics.get();
        for (sum, count) in self.ended.iter_mut().zip(&desk.ended) {
            *sum += count.get();
        }
    }
}
