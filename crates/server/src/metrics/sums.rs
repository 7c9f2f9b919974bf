//! Sums of what the threads have counted.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::histogram::Sum;
use super::recorder::{Ending, Key, ThreadCounters};

/// Adds up the counts of all threads.
pub(super) fn counts(threads: &[Arc<ThreadCounters>]) -> BTreeMap<Key, u64> {
    let mut counts: BTreeMap<Key, u64> = BTreeMap::new();
    let mut add = |key: Key, count: u64| {
        if count > 0 {
            *counts.entry(key).or_default() += count;
        }
    };
    for counters in threads {
        for (row, cells) in counters.cells.iter().enumerate() {
            add((row, Ending::Status(0), None), cells.plain.load(Ordering::Relaxed));
            for (place, count) in cells.by_export.iter().enumerate() {
                if let Some(export) = counters.export_at(place) {
                    let key = (row, Ending::Status(0), Some(export));
                    add(key, count.load(Ordering::Relaxed));
                }
            }
        }
        let others = counters.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.counts.iter().for_each(|(key, count)| add(*key, *count));
    }
    counts
}

/// Adds up the nanoseconds of the calls of each export.
pub(super) fn service_by_export(threads: &[Arc<ThreadCounters>]) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for (export, nanoseconds) in threads.iter().flat_map(|counters| counters.service_by_export()) {
        *sums.entry(export).or_default() += nanoseconds;
    }
    sums
}

/// Adds up the latencies of one row.
pub(super) fn latency(threads: &[Arc<ThreadCounters>], row: usize) -> Sum {
    let mut sum = Sum::new();
    let cells = threads.iter().filter_map(|counters| counters.cells.get(row));
    cells.for_each(|cells| sum.add(&cells.latency));
    sum
}
