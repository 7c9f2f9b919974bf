use crate::sync::atomic::{AtomicU64, Ordering};

/// Counts of events since the server started; only rare events are counted.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) recalls_sent: Count,
    pub(crate) recalls_returned: Count,
    pub(crate) recalls_overdue: Count,
    pub(crate) recalls_any: Count,
    pub(crate) directories_granted: Count,
    /// The counts in the order of [`crate::NoDirectory::ALL`].
    pub(crate) directories_refused: [Count; 6],
    pub(crate) directories_recalled: Count,
    /// Notifications of changes in directories: one for each change and holder.
    pub(crate) directory_notices: Count,
    /// Notifications of changed attributes of objects in directories.
    pub(crate) child_notices: Count,
    /// CB_NOTIFYs, each of which carries one notification or more.
    pub(crate) directory_notice_calls: Count,
    pub(crate) directory_calls_saved: Count,
    pub(crate) directory_calls_caused: Count,
    pub(crate) slot_recalls: Count,
    pub(crate) slot_recalls_heeded: Count,
    pub(crate) revoked: Count,
    pub(crate) rights_ended: Count,
    pub(crate) lock_waits: Count,
    pub(crate) replies_again: Count,
    pub(crate) evicted: Count,
}

/// A number that grows.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
