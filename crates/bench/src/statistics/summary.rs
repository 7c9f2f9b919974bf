//! Means, medians, percentiles.

use serde::{Deserialize, Serialize};

/// The usual figures of a list of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of samples.
    pub count: usize,
    /// The mean of the samples.
    pub mean: f64,
    /// The median of the samples.
    pub median: f64,
    /// The standard deviation of the sample (n - 1); 0 for one sample.
    pub deviation: f64,
    /// The smallest sample.
    pub least: f64,
    /// The largest sample.
    pub most: f64,
}

impl Summary {
    /// Returns the summary of samples in any order; `None` if there are none.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        Some(Self {
            count: samples.len(),
            mean: mean(samples)?,
            median: median(samples)?,
            deviation: variance(samples).unwrap_or(0.0).sqrt(),
            least: samples.iter().copied().reduce(f64::min)?,
            most: samples.iter().copied().reduce(f64::max)?,
        })
    }
}

/// The mean; `None` if there are no samples.
#[must_use]
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// The variance of the sample (n - 1); `None` for fewer than two.
#[must_use]
pub fn variance(samples: &[f64]) -> Option<f64> {
    let center = mean(samples)?;
    let squares: f64 = samples.iter().map(|x| (x - center).powi(2)).sum();
    (samples.len() > 1).then(|| squares / (samples.len() - 1) as f64)
}

/// The median: of an even number of samples, the mean of the two in the middle.
#[must_use]
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The value that the part `part` (0 to 1) of the samples does not exceed, linear between samples
/// (Hyndman and Fan's definition 7, as in R and numpy).
#[must_use]
pub fn quantile(samples: &[f64], part: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, part)
}

/// Like [`quantile`], for sorted samples.
pub(super) fn quantile_of_sorted(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = part.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + (high - low) * (place - below as f64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_of_one_to_ten() {
        let samples: Vec<f64> = (1..=10).map(f64::from).collect();
        let found = Summary::of(&samples).unwrap();
        assert_eq!((found.count, found.mean, found.median), (10, 5.5, 5.5));
        assert_eq!((found.least, found.most), (1.0, 10.0));
        assert!((found.deviation.powi(2) - 55.0 / 6.0).abs() < 1e-12);
        assert!((quantile(&samples, 0.9).unwrap() - 9.1).abs() < 1e-12);
    }

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(variance(&[3.0]), None);
        assert_eq!(Summary::of(&[3.0]).unwrap().deviation, 0.0);
    }

    proptest! {
        #[test]
        fn a_quantile_splits_the_samples(
            samples in prop::collection::vec(-1e6..1e6_f64, 1..200),
            part in 0.0..1.0_f64,
        ) {
            let at = quantile(&samples, part).unwrap();
            let below = samples.iter().filter(|x| **x < at).count() as f64;
            let above = samples.iter().filter(|x| **x > at).count() as f64;
            let gaps = (samples.len() - 1) as f64;
            prop_assert!(below <= part * gaps + 1.0);
            prop_assert!(above <= (1.0 - part) * gaps + 1.0);
        }

        #[test]
        fn figures_move_and_stretch_with_the_samples(
            samples in prop::collection::vec(-1e3..1e3_f64, 2..50),
            shift in -1e3..1e3_f64,
            scale in 0.1..10.0_f64,
        ) {
            let moved: Vec<f64> = samples.iter().map(|x| x * scale + shift).collect();
            let (a, b) = (Summary::of(&samples).unwrap(), Summary::of(&moved).unwrap());
            prop_assert!((a.mean * scale + shift - b.mean).abs() < 1e-6);
            prop_assert!((a.median * scale + shift - b.median).abs() < 1e-6);
            prop_assert!((a.deviation * scale - b.deviation).abs() < 1e-6);
        }
    }
}
