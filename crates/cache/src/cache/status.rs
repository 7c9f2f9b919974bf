//! Statistics of a cache.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Cache;
use crate::counters::CacheStatus;

impl Cache {
    /// Returns the statistics of the cache.
    #[must_use]
    pub fn status(&self) -> CacheStatus {
        let since: Vec<u64> = self
            .dirty
            .all()
            .iter()
            .filter_map(|(_, file)| {
                let state = file.lock();
                (!state.is_clean()).then_some(state.since)
            })
            .collect();
        let oldest = since.iter().min();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStatus {
            hit_bytes: read(&self.counters.hit_bytes),
            miss_bytes: read(&self.counters.miss_bytes),
            spared_calls: read(&self.counters.spared),
            disk_bytes: self.store.bytes_since(self.cleaner.total()),
            dirty_bytes: self.dirty.bytes(),
            dirty_files: since.len() as u64,
            dirty_age_milliseconds: oldest.map_or(0, |since| self.now().saturating_sub(*since)),
            partial_files: self.filler.partial_files(),
            conflicts: read(&self.counters.conflicts),
            damaged_pages: self.store.health().damaged(),
            is_disk_usable: self.store.health().is_usable(),
        }
    }
}
