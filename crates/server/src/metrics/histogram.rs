//! A histogram of latencies. There are two buckets for each doubling, so that no value is off by
//! more than half.

use std::sync::atomic::{AtomicU64, Ordering};

/// The exponent of the first bound in nanoseconds: the shortest calls take less.
const FIRST_EXPONENT: u32 = 8;
/// The exponent of the last bound in nanoseconds, 17 s; longer calls are in the bucket after it.
const LAST_EXPONENT: u32 = 34;
/// Number of buckets: one below the first power of two, two for each doubling, one above the last.
pub(super) const BUCKETS: usize = 2 * (LAST_EXPONENT - FIRST_EXPONENT) as usize + 2;

/// Counts that only one thread writes.
#[derive(Debug)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

/// The sum of the counts of several threads.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    pub(super) buckets: [u64; BUCKETS],
    pub(super) nanoseconds: u64,
}

impl Histogram {
    pub(super) const fn new() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BUCKETS], nanoseconds: AtomicU64::new(0) }
    }

    #[inline]
    pub(super) fn record(&self, nanoseconds: u64) {
        if let Some(bucket) = self.buckets.get(bucket(nanoseconds)) {
            add_as_owner(bucket, 1);
        }
        add_as_owner(&self.nanoseconds, nanoseconds);
    }
}

impl Sum {
    pub(super) const fn new() -> Self {
        Self { buckets: [0; BUCKETS], nanoseconds: 0 }
    }

    pub(super) fn add(&mut self, histogram: &Histogram) {
        for (sum, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
        self.nanoseconds += histogram.nanoseconds.load(Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Adds to a number that only this thread writes, so that no locked instruction is needed.
#[inline]
pub(super) fn add_as_owner(number: &AtomicU64, amount: u64) {
    number.store(number.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

/// Returns the upper bound of a bucket in nanoseconds; `None` for the last.
pub(super) fn bound_nanoseconds(bucket: usize) -> Option<u64> {
    let exponent = FIRST_EXPONENT + (bucket / 2) as u32;
    let bound = 1 << exponent;
    match bucket {
        0 => Some(bound),
        _ if bucket == BUCKETS - 1 => None,
        _ if bucket % 2 == 1 => Some(bound + bound / 2),
        _ => Some(bound),
    }
}

fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < 1 << FIRST_EXPONENT {
        return 0;
    }
    let exponent = nanoseconds.ilog2();
    let upper_half = (nanoseconds >> (exponent - 1)) & 1;
    let bucket = 1 + 2 * u64::from(exponent - FIRST_EXPONENT) + upper_half;
    (bucket as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_below_the_bound_of_its_bucket_and_not_below_the_one_before() {
        let around = |n: u64| [n - 1, n, n + 1];
        let samples = (1..40).flat_map(|e| [1_u64 << e, 3 << e]).flat_map(around);
        for nanoseconds in samples {
            let bucket = bucket(nanoseconds);
            if let Some(bound) = bound_nanoseconds(bucket) {
                assert!(nanoseconds < bound, "{nanoseconds} in {bucket}");
            }
            if let Some(below) = bucket.checked_sub(1) {
                assert!(nanoseconds >= bound_nanoseconds(below).unwrap(), "{nanoseconds}");
            }
        }
    }

    #[test]
    fn bounds_grow_and_only_the_last_is_missing() {
        let bounds: Vec<_> = (0..BUCKETS).map_while(bound_nanoseconds).collect();
        assert_eq!(bounds.len(), BUCKETS - 1);
        assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
    }
}
