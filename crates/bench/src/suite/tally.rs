use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Kind, Latency};

/// The operations of a driver so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Time spent in operations.
    pub spent: Duration,
    /// Operations done.
    pub operations: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Latencies in nanoseconds, indexed by the kind of operation.
    latencies: [Option<Box<Histogram<u64>>>; Kind::ALL.len()],
}

impl Tally {
    /// Adds an operation.
    pub(super) fn record(&mut self, kind: Kind, took: Duration) {
        self.spent += took;
        self.operations += 1;
        self.histogram(kind).saturating_record(took.as_nanos() as u64);
    }

    fn histogram(&mut self, kind: Kind) -> &mut Histogram<u64> {
        self.latencies[kind as usize].get_or_insert_with(|| Box::new(Latency::histogram()))
    }

    /// Returns the number of operations of a kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u64 {
        self.latencies[kind as usize].as_ref().map_or(0, |histogram| histogram.len())
    }

    /// Returns the latencies, one distribution for each kind of operation that was made.
    pub fn latencies(&self) -> impl Iterator<Item = Latency> {
        let kinds = Kind::ALL.iter().zip(&self.latencies);
        kinds.filter_map(|(kind, each)| Some(Latency::of(kind.name(), each.as_deref()?)))
    }

    /// Adds the tally of another worker at the same time: counts are added, the time is the longer
    /// one.
    pub fn merge(&mut self, other: Self) {
        self.spent = self.spent.max(other.spent);
        self.operations += other.operations;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        for (kind, histogram) in Kind::ALL.into_iter().zip(other.latencies) {
            // All histograms have the same bounds, so no value is out of range.
            let _ = histogram.map(|histogram| self.histogram(kind).add(*histogram));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_workers_work_adds_up_and_time_is_the_longer_one() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        one.record(Kind::Read, Duration::from_micros(5));
        other.record(Kind::Read, Duration::from_micros(3));
        other.record(Kind::Unlock, Duration::from_micros(4));
        one.merge(other);
        assert_eq!((one.operations, one.spent), (3, Duration::from_micros(7)));
        assert_eq!([Kind::Read, Kind::Unlock, Kind::Open].map(|kind| one.count(kind)), [2, 1, 0]);
        let found: Vec<_> =
            one.latencies().map(|each| (each.operation.clone(), each.count())).collect();
        assert_eq!(found, [("READ".to_owned(), 2), ("UNLOCK".to_owned(), 1)]);
    }
}
