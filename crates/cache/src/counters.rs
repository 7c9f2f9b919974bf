//! Statistics of a cache.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters.
#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    /// Bytes of reads that were answered from the cache.
    pub(crate) hit_bytes: AtomicU64,
    /// Bytes of reads that were fetched from the file system below.
    pub(crate) miss_bytes: AtomicU64,
    /// Verbs that were answered without a call to the file system below.
    pub(crate) spared: AtomicU64,
    /// Files whose data was kept as a conflict.
    pub(crate) conflicts: AtomicU64,
}

/// Statistics of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStatus {
    /// Bytes of reads that were answered from the cache.
    pub hit_bytes: u64,
    /// Bytes of reads that were fetched from the file system below.
    pub miss_bytes: u64,
    /// Verbs that were answered without the file system below.
    pub spared_calls: u64,
    /// Bytes on the cache disk; an estimate.
    pub disk_bytes: u64,
    /// Bytes of unsent data.
    pub dirty_bytes: u64,
    /// Files with unsent data.
    pub dirty_files: u64,
    /// Age of the oldest unsent data; 0 if there is none.
    pub dirty_age_milliseconds: u64,
    /// Files that programs have read in part and the filler will complete.
    pub partial_files: u64,
    /// Files whose data was kept as a conflict, because another client had changed them.
    pub conflicts: u64,
    /// Damaged pages that were found on the cache disk.
    pub damaged_pages: u64,
    /// False once the cache disk has failed; the cache then works without it.
    pub is_disk_usable: bool,
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
