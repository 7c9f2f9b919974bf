//! Confidence intervals of estimates.

use serde::{Deserialize, Serialize};

use super::student::student_quantile;
use super::summary::{mean, quantile_of_sorted, variance};
use crate::rng::Rng;

/// The default confidence of an interval.
pub const CONFIDENCE: f64 = 0.95;

/// Resamples of a bootstrap: its ends are then known to about a hundredth of its width.
const RESAMPLES: usize = 2_000;

/// An estimate between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The estimate.
    pub center: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Half the width as a part of the estimate; infinite around 0.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let half = (self.high - self.low) / 2.0;
        if half == 0.0 { 0.0 } else { half / self.center.abs() }
    }

    /// Returns whether the interval covers a value.
    #[must_use]
    pub fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The interval after an increasing change of scale, such as from logarithms back.
    #[must_use]
    pub fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self { low: change(self.low), center: change(self.center), high: change(self.high) }
    }
}

/// The mean and its interval by Student's t; `None` for fewer than two samples.
#[must_use]
pub fn mean_interval(samples: &[f64], confidence: f64) -> Option<Interval> {
    let center = mean(samples)?;
    let error = (variance(samples)? / samples.len() as f64).sqrt();
    let freedom = (samples.len() - 1) as f64;
    let half = error * student_quantile(f64::midpoint(1.0, confidence), freedom);
    Some(Interval { low: center - half, center, high: center + half })
}

/// Any figure and its interval by the bootstrap (Efron 1979, percentile method), for figures such
/// as medians that have no formula; `None` if the figure is not defined.
///
/// With few samples the interval is too narrow: below eight, use [`mean_interval`].
#[must_use]
pub fn bootstrap(
    samples: &[f64],
    figure: impl Fn(&[f64]) -> Option<f64>,
    confidence: f64,
    seed: u64,
) -> Option<Interval> {
    let center = figure(samples)?;
    let mut rng = Rng::new(seed);
    let mut drawn = vec![0.0; samples.len()];
    let mut figures = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        drawn.fill_with(|| samples[rng.below(samples.len() as u64) as usize]);
        figures.push(figure(&drawn)?);
    }
    figures.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let low = quantile_of_sorted(&figures, tail)?;
    Some(Interval { low, center, high: quantile_of_sorted(&figures, 1.0 - tail)? })
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use super::super::summary::median;
    use super::*;

    /// Returns the part of draws from a distribution for which the interval covers the true value.
    fn coverage(
        draws: u64,
        draw: impl Fn(&mut Rng) -> f64,
        (count, truth): (usize, f64),
        interval: impl Fn(&[f64], u64) -> Interval,
    ) -> f64 {
        let covered = |seed: &u64| {
            let mut rng = Rng::branch(11, *seed);
            let samples: Vec<f64> = (0..count).map(|_| draw(&mut rng)).collect();
            interval(&samples, *seed).covers(truth)
        };
        (0..draws).filter(covered).count() as f64 / draws as f64
    }

    #[test]
    fn the_t_interval_of_normal_samples_covers_the_mean_in_95_of_100() {
        for count in [3, 5, 30] {
            let normal = |rng: &mut Rng| 10.0 + 3.0 * rng.normal();
            let t = |samples: &[f64], _| mean_interval(samples, CONFIDENCE).unwrap();
            let covered = coverage(1_000, normal, (count, 10.0), t);
            assert!((0.93..=0.97).contains(&covered), "{count} samples: {covered}");
        }
    }

    #[test]
    fn the_bootstrap_of_a_median_covers_it_in_about_95_of_100() {
        let exponential = |rng: &mut Rng| -(1.0 - rng.unit()).ln();
        let interval =
            |samples: &[f64], seed| bootstrap(samples, median, CONFIDENCE, seed).unwrap();
        let covered = coverage(120, exponential, (25, LN_2), interval);
        assert!((0.9..=0.99).contains(&covered), "{covered}");
    }

    #[test]
    fn the_bootstrap_of_a_seed_is_always_the_same() {
        let samples = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.3];
        let make = |seed| bootstrap(&samples, median, CONFIDENCE, seed).unwrap();
        assert_eq!(make(1), make(1));
        assert!(make(1).low <= make(1).center && make(1).center <= make(1).high);
    }

    #[test]
    fn a_known_interval() {
        // Mean 3, deviation sqrt(2.5), t(0.975, 4) = 2.7764: 3 +- 1.9633.
        let found = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], CONFIDENCE).unwrap();
        assert!((found.high - 4.963_24).abs() < 1e-4 && (found.low - 1.036_76).abs() < 1e-4);
        assert!((found.spread() - 0.654_41).abs() < 1e-4);
        assert_eq!(mean_interval(&[1.0], CONFIDENCE), None);
    }
}
