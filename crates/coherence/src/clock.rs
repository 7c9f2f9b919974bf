use std::time::{Duration, Instant};

/// The time as the engine of state counts it: since a moment before anything was remembered. All
/// who speak with one engine need copies of one clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// A clock that began so long ago: with others of the same engine, of which one is as old as
    /// the engine's time, it lets time pass.
    #[must_use]
    pub fn begun(age: Duration) -> Self {
        let now = Instant::now();
        Self(now.checked_sub(age).unwrap_or(now))
    }

    /// The time since then.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }

    /// The time that it was at `moment`.
    #[must_use]
    pub fn at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.0)
    }
}
