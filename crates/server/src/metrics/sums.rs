//! Sums of what the threads have counted.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::histogram::Sum;
use super::recorder::{Ending, Key, Sheet};

/// Adds up the counts of all threads.
pub(super) fn counts(sheets: &[Arc<Sheet>]) -> BTreeMap<Key, u64> {
    let mut counts: BTreeMap<Key, u64> = BTreeMap::new();
    let mut add = |key: Key, count: u64| {
        if count > 0 {
            *counts.entry(key).or_default() += count;
        }
    };
    for sheet in sheets {
        for (row, cells) in sheet.cells.iter().enumerate() {
            add((row, Ending::Status(0), None), cells.plain.load(Ordering::Relaxed));
            for (place, count) in cells.by_export.iter().enumerate() {
                if let Some(export) = sheet.export_at(place) {
                    let key = (row, Ending::Status(0), Some(export));
                    add(key, count.load(Ordering::Relaxed));
                }
            }
        }
        let others = sheet.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.counts.iter().for_each(|(key, count)| add(*key, *count));
    }
    counts
}

/// Adds up the nanoseconds of the calls of each export.
pub(super) fn service_by_export(sheets: &[Arc<Sheet>]) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for (export, nanoseconds) in sheets.iter().flat_map(|sheet| sheet.service_by_export()) {
        *sums.entry(export).or_default() += nanoseconds;
    }
    sums
}

/// Adds up the latencies of one row.
pub(super) fn latency(sheets: &[Arc<Sheet>], row: usize) -> Sum {
    let mut sum = Sum::new();
    let cells = sheets.iter().filter_map(|sheet| sheet.cells.get(row));
    cells.for_each(|cells| sum.add(&cells.latency));
    sum
}
