//! The rule by which a figure may be quoted.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::interval::{CONFIDENCE, mean_interval};

/// A figure is noisy if half its 95 % interval is more than this part of it.
pub const NOISY_ABOVE: f64 = 0.05;

/// Fewer samples than this are no result.
pub const SAMPLES_MIN: usize = 3;

/// The quality of the samples of one figure.
///
/// The rule: with fewer than [`SAMPLES_MIN`] samples there is no result; with more, the figure is
/// steady if the 95 % interval of its mean (Student's t) lies within 5 % of the mean, else noisy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// The value may be quoted.
    Steady {
        /// Half the interval, as a part of the mean.
        spread: f64,
    },
    /// The value varies more than it may.
    Noisy {
        /// Half the interval, as a part of the mean.
        spread: f64,
    },
    /// There are too few samples for a verdict.
    Few {
        /// The number of samples.
        samples: usize,
    },
}

impl Verdict {
    /// The verdict on samples.
    #[must_use]
    pub fn of(samples: &[f64]) -> Self {
        let few = Self::Few { samples: samples.len() };
        if samples.len() < SAMPLES_MIN {
            return few;
        }
        match mean_interval(samples, CONFIDENCE).map(|interval| interval.spread()) {
            Some(spread) if spread <= NOISY_ABOVE => Self::Steady { spread },
            Some(spread) => Self::Noisy { spread },
            None => few,
        }
    }

    /// Returns whether the figure may be quoted.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        matches!(self, Self::Steady { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steady { spread } => write!(out, "steady, within {:.1} %", spread * 100.0),
            Self::Noisy { spread } => write!(out, "noisy: \u{b1}{:.0} %", spread * 100.0),
            Self::Few { samples: 1 } => out.write_str("a single sample: no result"),
            Self::Few { samples } => write!(out, "{samples} samples: too few for a result"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_more_than_five_percent_on_either_side_is_noisy() {
        // Three samples with deviation d have the interval 4.3027 d / sqrt(3) = 2.4841 d.
        let around = |deviation: f64| [100.0 - deviation, 100.0, 100.0 + deviation];
        assert!(Verdict::of(&around(2.0)).is_steady());
        assert!(matches!(Verdict::of(&around(2.1)), Verdict::Noisy { .. }));
    }

    #[test]
    fn two_samples_are_too_few_however_alike() {
        assert_eq!(Verdict::of(&[5.0, 5.0]), Verdict::Few { samples: 2 });
        assert_eq!(Verdict::of(&[]), Verdict::Few { samples: 0 });
        assert_eq!(Verdict::of(&[5.0; 3]), Verdict::Steady { spread: 0.0 });
    }
}
