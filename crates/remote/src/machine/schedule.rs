use std::collections::BTreeSet;
use std::time::Duration;

/// Requests with a time for each: then it is sent again, or it fails.
#[derive(Debug, Default)]
pub(crate) struct Schedule(BTreeSet<(Duration, u64)>);

impl Schedule {
    /// Adds a request.
    pub(crate) fn add(&mut self, at: Duration, id: u64) {
        self.0.insert((at, id));
    }

    /// Removes a request, which need not be in it.
    pub(crate) fn remove(&mut self, at: Duration, id: u64) {
        self.0.remove(&(at, id));
    }

    /// Returns the earliest time.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Removes and returns the first request whose time has come.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<u64> {
        self.next_at().filter(|at| *at <= now)?;
        self.0.pop_first().map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn requests_come_out_in_the_order_of_their_times_and_not_before() {
        let mut schedule = Schedule::default();
        schedule.add(SECOND * 2, 1);
        schedule.add(SECOND, 2);
        schedule.add(SECOND, 3);
        schedule.add(SECOND, 4);
        schedule.remove(SECOND, 3);
        assert_eq!(schedule.next_at(), Some(SECOND));
        assert_eq!(schedule.pop_due(SECOND / 2), None);
        let at_one: Vec<u64> = std::iter::from_fn(|| schedule.pop_due(SECOND)).collect();
        assert_eq!(at_one, [2, 4]);
        assert_eq!(schedule.pop_due(SECOND * 3), Some(1));
        assert_eq!(schedule.next_at(), None);
    }
}
