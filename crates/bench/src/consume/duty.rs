use std::time::{Duration, Instant};

use anyhow::Result;

/// The longest rest between two looks at the clock.
const REST_MAX: Duration = Duration::from_millis(10);

/// A part of the time in which a resource is kept busy, and the time in all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Duty {
    /// 0 is never, 1 is always.
    pub(super) level: f64,
    pub(super) time: Duration,
}

impl Duty {
    /// Does small pieces of `work` until the time is over; rests so that the pieces fill the part
    /// of the time that is wanted.
    ///
    /// # Errors
    /// The first error of `work`.
    pub(super) fn keep(self, mut work: impl FnMut() -> Result<()>) -> Result<()> {
        let (started, mut busy) = (Instant::now(), Duration::ZERO);
        while started.elapsed() < self.time {
            let due = started.elapsed().mul_f64(self.level);
            if busy > due || self.level <= 0.0 {
                std::thread::sleep(self.rest(busy - busy.min(due)));
                continue;
            }
            let begun = Instant::now();
            work()?;
            busy += begun.elapsed();
        }
        Ok(())
    }

    /// Returns the rest after which work that is `ahead` of its part is due again.
    fn rest(self, ahead: Duration) -> Duration {
        if self.level <= 0.0 {
            return REST_MAX;
        }
        REST_MAX.min(Duration::from_secs_f64(ahead.as_secs_f64() / self.level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy_part(level: f64) -> f64 {
        let time = Duration::from_millis(400);
        let mut busy = Duration::ZERO;
        let piece = Duration::from_millis(2);
        let work = || {
            std::thread::sleep(piece);
            busy += piece;
            Ok(())
        };
        Duty { level, time }.keep(work).unwrap();
        busy.as_secs_f64() / time.as_secs_f64()
    }

    #[test]
    fn work_fills_its_part_of_the_time() {
        assert!(busy_part(0.0) == 0.0);
        // A piece that sleeps takes longer than it asked for, so the lower bounds are wide.
        let (third, all) = (busy_part(0.3), busy_part(1.0));
        assert!((0.1..0.33).contains(&third), "{third}");
        assert!((0.5..1.01).contains(&all), "{all}");
    }

    #[test]
    fn an_error_of_the_work_ends_it() {
        let duty = Duty { level: 1.0, time: Duration::from_secs(60) };
        assert!(duty.keep(|| anyhow::bail!("no more")).is_err());
    }
}
