use std::collections::BTreeMap;
use std::time::Duration;

use crate::average::damped;

/// Counters of one operation since the server started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Operations done.
    pub done: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Number of operations in each bucket of latency, if that is measured.
    pub latencies: Vec<u64>,
}

/// The load by one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationLoad<K> {
    /// The operation.
    pub key: K,
    /// Operations a second between the last two samples.
    pub now: f64,
    /// Operations a second, as an average over a minute.
    pub minute: f64,
    /// Failures a second between the last two samples.
    pub failed: f64,
    /// The time within which half of the operations were done, between the last two samples.
    pub median: Option<Duration>,
    /// The time within which 99 of 100 operations were done.
    pub p99: Option<Duration>,
}

/// The load by each operation, from counters that are read from time to time.
#[derive(Debug)]
pub struct Operations<K> {
    /// Returns the upper bound of a latency bucket in nanoseconds; `None` for the last.
    bound: fn(usize) -> Option<u64>,
    read: Option<Duration>,
    operations: BTreeMap<K, OperationTrend>,
}

#[derive(Debug, Clone, Default)]
struct OperationTrend {
    counts: OperationCounts,
    now: f64,
    minute: f64,
    failed: f64,
    /// Number of operations in each latency bucket between the last two samples.
    latencies: Vec<u64>,
}

impl<K: Ord + Clone> Operations<K> {
    /// Makes a list without operations; `bound` returns the upper bound in nanoseconds of each
    /// latency bucket.
    #[must_use]
    pub const fn new(bound: fn(usize) -> Option<u64>) -> Self {
        Self { bound, read: None, operations: BTreeMap::new() }
    }

    /// Adds the counters of all operations at the time `at`.
    pub fn add(&mut self, at: Duration, counts: impl Iterator<Item = (K, OperationCounts)>) {
        let elapsed = self.read.replace(at).map(|then| at.saturating_sub(then));
        for (key, counts) in counts {
            let operation = self.operations.entry(key).or_default();
            match elapsed.filter(|elapsed| !elapsed.is_zero()) {
                Some(elapsed) => operation.add(counts, elapsed),
                None => operation.counts = counts,
            }
        }
    }

    /// Returns the operations that were done, those with the highest rate over a minute first.
    #[must_use]
    pub fn busiest(&self) -> Vec<OperationLoad<K>> {
        let done = self.operations.iter().filter(|(_, operation)| operation.counts.done > 0);
        let mut loads: Vec<_> = done.map(|(key, operation)| self.load(key, operation)).collect();
        loads.sort_by(|one, other| other.minute.total_cmp(&one.minute));
        loads
    }

    fn load(&self, key: &K, operation: &OperationTrend) -> OperationLoad<K> {
        let within = |part| within(&operation.latencies, part, self.bound);
        OperationLoad {
            key: key.clone(),
            now: operation.now,
            minute: operation.minute,
            failed: operation.failed,
            median: within(0.5),
            p99: within(0.99),
        }
    }
}

impl OperationTrend {
    fn add(&mut self, counts: OperationCounts, elapsed: Duration) {
        let before = std::mem::replace(&mut self.counts, counts);
        let rate =
            |now: u64, before: u64| now.saturating_sub(before) as f64 / elapsed.as_secs_f64();
        self.now = rate(self.counts.done, before.done);
        self.failed = rate(self.counts.failed, before.failed);
        self.minute = damped(self.minute, self.now, elapsed, 60.0);
        let earlier = before.latencies.iter().chain(std::iter::repeat(&0));
        let since = self.counts.latencies.iter().zip(earlier);
        self.latencies = since.map(|(now, before)| now.saturating_sub(*before)).collect();
    }
}

/// Returns the time within which a part of the operations were done, rounded up to the bound of its
/// bucket; the last bucket has no bound, so the one before it is returned.
fn within(latencies: &[u64], part: f64, bound: fn(usize) -> Option<u64>) -> Option<Duration> {
    let all: u64 = latencies.iter().sum();
    if all == 0 {
        return None;
    }
    let wanted = (all as f64 * part).ceil() as u64;
    let mut sum = 0;
    let place = latencies.iter().position(|count| {
        sum += count;
        sum >= wanted
    })?;
    let found = bound(place).or_else(|| bound(place.checked_sub(1)?))?;
    Some(Duration::from_nanos(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The upper bounds of the buckets: 10, 20, 40 and more nanoseconds.
    fn bound(place: usize) -> Option<u64> {
        [10, 20, 40].get(place).copied()
    }

    fn counts(done: u64, failed: u64, latencies: &[u64]) -> OperationCounts {
        OperationCounts { done, failed, latencies: latencies.to_vec() }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn rates_and_percentiles_are_of_the_time_between_two_samples() {
        let mut operations = Operations::new(bound);
        operations.add(at(0), [("READ", counts(1_000, 0, &[0, 0, 1_000, 0]))].into_iter());
        operations.add(at(2), [("READ", counts(1_200, 4, &[98, 100, 1_002, 0]))].into_iter());
        let load = &operations.busiest()[0];
        assert_eq!((load.now, load.failed), (100.0, 2.0));
        assert_eq!(load.median, Some(Duration::from_nanos(20)));
        assert_eq!(load.p99, Some(Duration::from_nanos(20)));
        operations.add(at(3), [("READ", counts(1_200, 4, &[98, 100, 1_002, 0]))].into_iter());
        let load = &operations.busiest()[0];
        assert_eq!((load.now, load.median), (0.0, None));
    }

    #[test]
    fn a_time_beyond_the_last_bound_is_at_least_that_bound() {
        assert_eq!(within(&[0, 0, 0, 5], 0.5, bound), Some(Duration::from_nanos(40)));
        assert_eq!(within(&[1, 0, 0, 99], 0.01, bound), Some(Duration::from_nanos(10)));
        assert_eq!(within(&[], 0.5, bound), None);
    }

    #[test]
    fn operations_without_latencies_have_rates() {
        let mut operations = Operations::new(bound);
        for (second, done) in [(0, 0), (1, 50)] {
            operations.add(at(second), [("OPEN", counts(done, 0, &[]))].into_iter());
        }
        let load = &operations.busiest()[0];
        assert_eq!((load.now, load.p99), (50.0, None));
    }

    #[test]
    fn an_operation_that_was_never_done_is_not_shown() {
        let mut operations = Operations::new(bound);
        operations.add(at(0), [("LINK", counts(0, 0, &[]))].into_iter());
        assert!(operations.busiest().is_empty());
    }
}
