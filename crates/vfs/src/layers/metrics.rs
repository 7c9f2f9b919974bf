use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Hook, Verb};
use crate::limits::LATENCY_BUCKETS;
use crate::{Handle, Result};

/// Counts calls, failures and latencies of every verb.
#[derive(Debug, Default)]
pub struct Metrics {
    verbs: [Counters; Verb::ALL.len()],
}

#[derive(Debug, Default)]
struct Counters {
    failures: AtomicU64,
    nanoseconds: AtomicU64,
    buckets: [AtomicU64; LATENCY_BUCKETS],
}

/// The counters of one verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// Calls that have ended.
    pub calls: u64,
    /// The calls that failed.
    pub failures: u64,
    /// Total time of all calls.
    pub total: Duration,
    /// Calls by latency: bucket `n` counts the calls that took less than 2 to the `n` microseconds
    /// and are not in an earlier bucket; the last one also counts all longer calls.
    pub buckets: [u64; LATENCY_BUCKETS],
}

impl Metrics {
    /// The counters of `verb` up to now.
    #[must_use]
    pub fn sample(&self, verb: Verb) -> Sample {
        let Some(counters) = self.verbs.get(verb as usize) else { return Sample::default() };
        let buckets = counters.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        Sample {
            calls: buckets.iter().sum(),
            failures: counters.failures.load(Ordering::Relaxed),
            total: Duration::from_nanos(counters.nanoseconds.load(Ordering::Relaxed)),
            buckets,
        }
    }
}

impl Hook for Metrics {
    fn around<T>(&self, verb: Verb, _node: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let outcome = work();
        if let Some(counters) = self.verbs.get(verb as usize) {
            counters.note(start.elapsed(), outcome.is_err());
        }
        outcome
    }
}

impl Counters {
    fn note(&self, took: Duration, failed: bool) {
        self.failures.fetch_add(failed.into(), Ordering::Relaxed);
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        if let Some(bucket) = self.buckets.get(bucket(took)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn bucket(took: Duration) -> usize {
    let microseconds = took.as_micros() as u64;
    ((u64::BITS - microseconds.leading_zeros()) as usize).min(LATENCY_BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    #[test]
    fn buckets_double() {
        let at = |microseconds| bucket(Duration::from_micros(microseconds));
        assert_eq!([0, 1, 2, 3, 4, 1024].map(at), [0, 1, 2, 2, 3, 11]);
        assert_eq!(at(u64::MAX), LATENCY_BUCKETS - 1);
    }

    #[test]
    fn failures_are_calls_too() {
        let metrics = Metrics::default();
        let node = Handle::new(b"x").unwrap();
        assert_eq!(metrics.around(Verb::Read, &node, || Ok(1)), Ok(1));
        assert_eq!(metrics.around::<()>(Verb::Read, &node, || Err(Status::Io)), Err(Status::Io));
        let sample = metrics.sample(Verb::Read);
        assert_eq!((sample.calls, sample.failures), (2, 1));
        assert_eq!(metrics.sample(Verb::Write), Sample::default());
    }
}
