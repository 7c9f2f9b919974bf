use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Times single operations. Each measured time contains the cost of reading the clock once, 20 to
/// 60 ns, which is subtracted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopwatch {
    look: Duration,
}

/// Pairs of clock readings from which the least difference is taken.
const PAIRS: usize = 1000;

/// The least difference of any pair in this program, in nanoseconds.
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);

impl Stopwatch {
    /// A stopwatch that has measured the time of reading the clock. Only the least time ever
    /// measured is subtracted, so that no operation seems faster than it was: if an interrupt or a
    /// slow processor makes a reading longer, the surplus stays in the figure.
    pub(super) fn new() -> Self {
        let pair = |_| Instant::now().elapsed().as_nanos() as u64;
        let least = (0..PAIRS).map(pair).min().unwrap_or(0);
        let before = LEAST.fetch_min(least, Ordering::Relaxed);
        Self { look: Duration::from_nanos(least.min(before)) }
    }

    /// Returns the time of reading the clock, which is subtracted, in nanoseconds.
    pub(super) const fn look_nanoseconds(self) -> u64 {
        self.look.as_nanos() as u64
    }

    /// Runs `work` and returns its time, at least a nanosecond, so that a rate can be computed from
    /// it.
    pub(super) fn time<T>(self, work: impl FnOnce() -> T) -> (T, Duration) {
        let start = Instant::now();
        let result = work();
        let took = start.elapsed();
        (result, took.saturating_sub(self.look).max(Duration::from_nanos(1)))
    }
}
