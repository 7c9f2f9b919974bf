//! Whether a host of NLM answers when it is asked (NLM NULL).

use std::time::Duration;

use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What came of asking a host whether it is there.
#[derive(Default)]
pub(crate) struct Asked {
    /// When it was asked last; 0 if never.
    pub(crate) at_nanoseconds: AtomicU64,
    pub(crate) under_way: AtomicBool,
    /// Questions in a row that were not answered.
    pub(crate) unanswered: AtomicU32,
}

impl Asked {
    pub(crate) fn at(&self) -> Duration {
        Duration::from_nanos(self.at_nanoseconds.load(Ordering::Relaxed))
    }

    pub(crate) fn begin(&self, now: Duration) {
        self.at_nanoseconds.store(now.as_nanos() as u64, Ordering::Relaxed);
        self.under_way.store(true, Ordering::Relaxed);
    }
}
