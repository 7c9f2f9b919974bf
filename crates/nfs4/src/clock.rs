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

    /// The time since then.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
