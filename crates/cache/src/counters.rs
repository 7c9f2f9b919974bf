//! Numbers for those who look at a cache.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that grow.
#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    /// Bytes of reads that were answered from the cache.
    pub(crate) hit_bytes: AtomicU64,
    /// Bytes of reads that were fetched.
    pub(crate) miss_bytes: AtomicU64,
    /// Verbs that were answered without the file system below.
    pub(crate) spared: AtomicU64,
    /// Conflicts between what was written here and by other clients.
    pub(crate) conflicts: AtomicU64,
}

/// The state of a cache, for those who look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStatus {
    /// Bytes of reads that were answered from the cache.
    pub hit_bytes: u64,
    /// Bytes of reads that were fetched from the file system below.
    pub miss_bytes: u64,
    /// Verbs that were answered without the file system below.
    pub spared_calls: u64,
    /// Bytes on the cache disk, about.
    pub disk_bytes: u64,
    /// Bytes that programs have written and the file system below does not have yet.
    pub dirty_bytes: u64,
    /// Files that they belong to.
    pub dirty_files: u64,
    /// Age of the oldest of them; 0 if there are none.
    pub dirty_age_milliseconds: u64,
    /// Files that programs have read in part, and the filler is to complete.
    pub partial_files: u64,
    /// Files whose data was kept beside, because another client had changed them.
    pub conflicts: u64,
    /// Pages of the cache disk that were damaged, and read again.
    pub damaged_pages: u64,
    /// False once the cache disk has failed, and the cache goes on without it.
    pub is_disk_usable: bool,
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
