//! Probes of hosts of NLM, which check that a host still answers (NLM NULL).

use std::time::Duration;

use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Probes of a host, and its answers.
#[derive(Default)]
pub(crate) struct HostProbe {
    /// Time of the last probe; 0 if there was none.
    pub(crate) at_nanoseconds: AtomicU64,
    pub(crate) under_way: AtomicBool,
    /// Number of probes in a row that were not answered.
    pub(crate) unanswered: AtomicU32,
}

impl HostProbe {
    pub(crate) fn at(&self) -> Duration {
        Duration::from_nanos(self.at_nanoseconds.load(Ordering::Relaxed))
    }

    pub(crate) fn begin(&self, now: Duration) {
        self.at_nanoseconds.store(now.as_nanos() as u64, Ordering::Relaxed);
        self.under_way.store(true, Ordering::Relaxed);
    }
}
