use std::time::{Duration, Instant};

/// The time that a run may take, divided among its remaining parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeBudget {
    /// The end of the budget; none if the time is not limited.
    end: Option<Instant>,
}

impl TimeBudget {
    /// Starts a budget of this much time.
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { end: limit.and_then(|limit| Instant::now().checked_add(limit)) }
    }

    /// An equal part of the remaining time, for the first of `of` remaining parts.
    pub(crate) fn part(self, of: usize) -> Self {
        let now = Instant::now();
        let left = |end: Instant| end.saturating_duration_since(now);
        Self { end: self.end.map(|end| now + left(end) / of.max(1) as u32) }
    }

    /// Returns whether there is time for one more step, if it takes the mean time of the `done`
    /// steps since `begun`.
    pub(crate) fn has_room(self, begun: Instant, done: u32) -> bool {
        let each = begun.elapsed() / done.max(1);
        self.left().is_none_or(|left| each <= left)
    }

    /// Returns the time that is left, if there is a limit.
    pub(crate) fn left(self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_shared_out() {
        let all = TimeBudget::new(Some(Duration::from_secs(1000)));
        let part = all.part(4).left().unwrap().as_secs_f64();
        assert!((245.0..=250.0).contains(&part), "{part}");
        assert!(all.has_room(Instant::now(), 1));
        let used_up = TimeBudget::new(Some(Duration::ZERO));
        assert_eq!(used_up.part(3).left(), Some(Duration::ZERO));
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(!used_up.has_room(begun, 1));
        let none = TimeBudget::new(None);
        assert!(none.part(2).left().is_none() && none.has_room(begun, 1));
    }
}
