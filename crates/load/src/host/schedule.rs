use std::collections::BTreeMap;

use crate::limits::THREADS_MAX;
use crate::ratio::Ratio;
use crate::resource::Resource;

/// Time in which each thread of the server ran and in which it waited for a processor, in
/// nanoseconds, by the number of the thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Schedule(BTreeMap<u64, [u64; 2]>);

impl Schedule {
    /// Reads a line for each thread: its number, and its `schedstat` (proc(5)), which is the time
    /// on a processor, the time on a run queue, and a number of time slices.
    pub(super) fn read(text: &str) -> Self {
        let times = |line: &str| {
            let mut fields = line.split_ascii_whitespace().map_while(|field| field.parse().ok());
            Some((fields.next()?, [fields.next()?, fields.next()?]))
        };
        Self(text.lines().filter_map(times).take(THREADS_MAX).collect())
    }

    /// Returns the part of its time that the server waited for others. A thread also waits for
    /// other threads of the server, and until an idle processor has woken up. So only the part of
    /// the waits counts that the `others` are to blame for: the chance that all processors are in
    /// use, and the part that others have in that use.
    pub(super) fn since(&self, before: &Self, others: f64) -> Option<(Resource, Ratio)> {
        let both = self.0.iter().filter_map(|(thread, now)| Some((now, before.0.get(thread)?)));
        let spent = |at: usize| {
            let each = both.clone().filter_map(|(now, was)| Some((now.get(at)?, was.get(at)?)));
            each.map(|(now, was)| now.saturating_sub(*was) as f64).sum::<f64>()
        };
        let (ran, waited) = (spent(0), spent(1) * others);
        let stall = (Resource::ServerStall, Ratio::of(waited, ran + waited));
        (!self.0.is_empty() && !before.0.is_empty()).then_some(stall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(before: &str, after: &str, others: f64) -> Option<f64> {
        let since = Schedule::read(after).since(&Schedule::read(before), others);
        since.map(|(_, ratio)| ratio.get())
    }

    #[test]
    fn threads_that_wait_for_a_processor_count_by_the_time_that_they_wanted_one() {
        let before = "7 1000000 5000000 7\n8 2000000 0 9\n";
        let after = "7 1500000 5500000 8\n8 2500000 0 9\nnonsense\n";
        assert_eq!(stall(before, after, 1.0), Some(1.0 / 3.0));
        assert_eq!(stall(before, after, 0.5), Some(0.25 / 1.25));
        assert_eq!(stall(before, after, 0.0), Some(0.0), "the processors were idle");
        assert_eq!(stall(before, before, 1.0), Some(0.0), "the server did nothing");
        assert_eq!(stall("", after, 1.0), None);
        assert_eq!(stall("7 1000\n", after, 1.0), None);
    }

    #[test]
    fn a_thread_that_begins_or_ends_does_not_change_the_part_of_the_others() {
        let before = "7 9000000 0 1\n8 100 100 1\n";
        let after = "8 300 300 1\n9 0 7000000 1\n";
        assert_eq!(stall(before, after, 1.0), Some(0.5));
    }
}
