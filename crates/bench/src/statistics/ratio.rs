//! Ratios: two lists measured in alternation, compared pair by pair.

use serde::{Deserialize, Serialize};

use super::interval::{CONFIDENCE, Interval, mean_interval};
use super::student::student_quantile;
use super::summary::{mean, variance};

/// The ratio of a target to a base, from pairs that were measured one after the other.
///
/// A machine that is slow for a while is slow for both of a pair, and the slowness cancels in their
/// ratio. The figure is the geometric mean, so that the ratio of B to A is the inverse of that of A
/// to B.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The ratio and its 95 % interval, which is infinite for a single pair.
    pub interval: Interval,
    /// The number of pairs.
    pub pairs: usize,
}

impl Ratio {
    /// The ratio of two lists whose samples with the same index are pairs; surplus samples of one
    /// list are left out. `None` if there is no pair of positive numbers.
    #[must_use]
    pub fn of(measured: &[f64], base: &[f64]) -> Option<Self> {
        let pairs = measured.iter().zip(base).filter(|(a, b)| **a > 0.0 && **b > 0.0);
        let logarithms: Vec<f64> = pairs.map(|(a, b)| (a / b).ln()).collect();
        let first = *logarithms.first()?;
        let everything = Interval { low: f64::NEG_INFINITY, center: first, high: f64::INFINITY };
        let interval = mean_interval(&logarithms, CONFIDENCE).unwrap_or(everything);
        Some(Self { interval: interval.map(f64::exp), pairs: logarithms.len() })
    }

    /// The ratio of two lists that were measured apart, by Welch's t on logarithms; `pairs` is then
    /// the length of the shorter. `None` if one has no positive number.
    #[must_use]
    pub fn between(measured: &[f64], base: &[f64]) -> Option<Self> {
        let logarithms = |list: &[f64]| -> Vec<f64> {
            list.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect()
        };
        let (a, b) = (logarithms(measured), logarithms(base));
        let center = mean(&a)? - mean(&b)?;
        let half = welch(&a, &b).unwrap_or(f64::INFINITY);
        let interval = Interval { low: center - half, center, high: center + half };
        Some(Self { interval: interval.map(f64::exp), pairs: a.len().min(b.len()) })
    }

    /// The inverse ratio.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let Interval { low, center, high } = self.interval;
        let interval = Interval { low: 1.0 / high, center: 1.0 / center, high: 1.0 / low };
        Self { interval, pairs: self.pairs }
    }

    /// Returns whether the difference is significant: the interval does not cover 1.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        !self.interval.covers(1.0)
    }
}

/// Half the 95 % interval of the difference of two means (Welch 1947).
fn welch(a: &[f64], b: &[f64]) -> Option<f64> {
    let (own, other) = (variance(a)? / a.len() as f64, variance(b)? / b.len() as f64);
    let both = own + other;
    if both == 0.0 {
        return Some(0.0);
    }
    let squares = own * own / (a.len() - 1) as f64 + other * other / (b.len() - 1) as f64;
    let part = f64::midpoint(1.0, CONFIDENCE);
    Some(both.sqrt() * student_quantile(part, both * both / squares))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_slowdown_of_both_of_a_pair_drops_out() {
        let mut rng = Rng::new(2);
        let base: Vec<f64> = (0..20).map(|_| 100.0 * (1.0 + 5.0 * rng.unit())).collect();
        let measured: Vec<f64> = base.iter().map(|b| b * 1.1).collect();
        let ratio = Ratio::of(&measured, &base).unwrap();
        assert!((ratio.interval.center - 1.1).abs() < 1e-9);
        assert!(ratio.interval.spread() < 1e-9 && ratio.is_distinct());
    }

    #[test]
    fn one_pair_proves_nothing() {
        let ratio = Ratio::of(&[3.0], &[1.0]).unwrap();
        assert_eq!((ratio.interval.low, ratio.interval.high), (0.0, f64::INFINITY));
        assert!(!ratio.is_distinct());
        assert_eq!(Ratio::of(&[], &[1.0]), None);
        assert_eq!(Ratio::of(&[0.0], &[1.0]), None);
    }

    #[test]
    fn lists_measured_apart_are_compared_by_welch() {
        // Logarithms 0, 1, 2 and 5, 5.5, 6: variances 1 and 0.25, so the error is sqrt(5/12),
        // freedom is 2.9412 and t is 3.2184.
        let measured = [5.0, 5.5, 6.0].map(f64::exp);
        let base = [0.0, 1.0, 2.0].map(f64::exp);
        let ratio = Ratio::between(&measured, &base).unwrap();
        assert!((ratio.interval.center.ln() - 4.5).abs() < 1e-9);
        assert!((ratio.interval.high.ln() - 4.5 - 2.077_5).abs() < 1e-2, "{ratio:?}");
        assert!(!Ratio::between(&[2.0], &base).unwrap().is_distinct());
    }

    proptest! {
        #[test]
        fn the_other_way_round_it_is_the_inverse(
            pairs in prop::collection::vec((0.1..10.0_f64, 0.1..10.0_f64), 2..20),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let (forth, back) = (Ratio::of(&a, &b).unwrap(), Ratio::of(&b, &a).unwrap());
            prop_assert!((forth.interval.center * back.interval.center - 1.0).abs() < 1e-9);
            prop_assert!((forth.interval.low * back.interval.high - 1.0).abs() < 1e-6);
            prop_assert_eq!(forth.is_distinct(), back.is_distinct());
            let turned = forth.inverse().interval;
            prop_assert!((turned.center / back.interval.center - 1.0).abs() < 1e-9);
            prop_assert!((turned.low / back.interval.low - 1.0).abs() < 1e-6);
        }
    }
}
