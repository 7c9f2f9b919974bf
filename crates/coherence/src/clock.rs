use std::time::{Duration, Instant};

/// The clock of the state engine: its time counts from a moment before any state was created. All
/// users of one engine need copies of one clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// Makes a clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Makes a clock that started `age` ago, so that a test can let time pass for an engine with
    /// another clock.
    #[must_use]
    pub fn begun(age: Duration) -> Self {
        let now = Instant::now();
        Self(now.checked_sub(age).unwrap_or(now))
    }

    /// Returns the time since the start of the clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the clock's time at `moment`.
    #[must_use]
    pub fn at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.0)
    }
}
