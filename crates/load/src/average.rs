use std::time::Duration;

use crate::ratio::Ratio;

/// A ratio now, and its exponentially damped averages, like those of the Unix load average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Averages {
    /// The last sample.
    pub now: Ratio,
    /// The average over a second.
    pub second: Ratio,
    /// The average over a minute.
    pub minute: Ratio,
    /// The average over five minutes.
    pub five_minutes: Ratio,
}

impl Averages {
    /// Returns the averages after the first sample, which is the best estimate of all of them.
    pub(crate) const fn first(sample: Ratio) -> Self {
        Self { now: sample, second: sample, minute: sample, five_minutes: sample }
    }

    /// Adds a sample, `elapsed` after the one before.
    pub(crate) fn add(&mut self, sample: Ratio, elapsed: Duration) {
        self.now = sample;
        for (average, seconds) in
            [(&mut self.second, 1.0), (&mut self.minute, 60.0), (&mut self.five_minutes, 300.0)]
        {
            *average = Ratio::of(damped(average.get(), sample.get(), elapsed, seconds), 1.0);
        }
    }
}

/// Moves an average towards a sample: `a += (x - a) * (1 - exp(-dt / tau))`, where `tau` is in
/// seconds.
pub(crate) fn damped(average: f64, sample: f64, elapsed: Duration, tau: f64) -> f64 {
    average + (sample - average) * -(-elapsed.as_secs_f64() / tau).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a time constant, an average has followed a step of its input except for a part of 1/e.
    #[test]
    fn an_average_reaches_63_percent_of_a_step_after_its_time() {
        let mut averages = Averages::first(Ratio::IDLE);
        for second in 1..=300 {
            averages.add(Ratio::FULL, Duration::from_secs(1));
            let reached = 1.0 - (-1.0_f64).exp();
            let due = [(1, averages.second), (60, averages.minute), (300, averages.five_minutes)];
            for (_, average) in due.iter().filter(|(time, _)| *time == second) {
                assert!((average.get() - reached).abs() < 1e-9, "{second} s: {average:?}");
            }
        }
        assert_eq!(averages.now, Ratio::FULL);
    }

    #[test]
    fn averages_do_not_depend_on_how_often_samples_are_taken() {
        let sample = Ratio::of(0.7, 1.0);
        let [mut once, mut often] = [Averages::first(Ratio::IDLE); 2];
        once.add(sample, Duration::from_secs(10));
        (0..100).for_each(|_| often.add(sample, Duration::from_millis(100)));
        assert!((once.minute.get() - often.minute.get()).abs() < 1e-9, "{once:?} {often:?}");
        assert!((once.five_minutes.get() - often.five_minutes.get()).abs() < 1e-9);
    }
}
