//! Questions to hosts of NLM, which check that a host is still there (NLM NULL).

use std::time::Duration;

use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Questions to a host, and the answers.
#[derive(Default)]
pub(crate) struct HostProbe {
    /// When it was asked last; 0 if never.
    pub(crate) at_nanoseconds: AtomicU64,
    pub(crate) under_way: AtomicBool,
    /// Questions in a row that were not answered.
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
