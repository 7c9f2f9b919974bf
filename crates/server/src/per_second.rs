use std::sync::atomic::{AtomicU64, Ordering};

/// Counts something in the present second.
#[derive(Default)]
pub(crate) struct PerSecond(AtomicU64);

impl PerSecond {
    /// Counts one more in this second, unless there were `most` already.
    pub(crate) fn take(&self, second: u32, most: u32) -> bool {
        let taken = |packed: u64| if (packed >> 32) as u32 == second { packed as u32 } else { 0 };
        let next = |packed: u64| {
            let count = taken(packed);
            (count < most).then(|| u64::from(second) << 32 | u64::from(count + 1))
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}
