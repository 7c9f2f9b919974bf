//! The time of a call predicted from the part of a resource that is in use.

use crate::limits::QUEUE_RATIO_MAX;
use crate::ratio::Ratio;

/// The form in which the time of a call grows with the part of a resource that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// In proportion to the part in use, as when others take turns.
    Proportional,
    /// Like the queue of a server that does one call at a time (M/M/1): `u / (1 - u)`.
    Queue,
}

impl Term {
    const ALL: [Self; 2] = [Self::Proportional, Self::Queue];

    /// The name of the term in a table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proportional => "u",
            Self::Queue => "u/(1-u)",
        }
    }

    fn of(self, ratio: Ratio) -> f64 {
        let used = ratio.get();
        match self {
            Self::Proportional => used,
            Self::Queue => used.min(QUEUE_RATIO_MAX) / (1.0 - used.min(QUEUE_RATIO_MAX)),
        }
    }
}

/// A line through measured times, by the least squares of relative errors: an error of 10 us
/// matters for a call of 50 us, and not for one of 5 ms.
#[derive(Debug, Clone, Copy)]
pub struct Prediction {
    term: Term,
    /// The time on an idle resource, in the unit of the measured times.
    base: f64,
    slope: f64,
    r_squared: f64,
}

impl Prediction {
    /// Fits a line to pairs of a resource's ratio and the time of a call, with the term that
    /// explains more of the variance. Returns `None` for fewer than three pairs, or if the ratio is
    /// constant, or a time is not positive.
    #[must_use]
    pub fn fit(samples: &[(Ratio, f64)]) -> Option<Self> {
        let fitted = Term::ALL.into_iter().filter_map(|term| Self::by(term, samples));
        fitted.max_by(|a, b| a.r_squared.total_cmp(&b.r_squared))
    }

    fn by(term: Term, samples: &[(Ratio, f64)]) -> Option<Self> {
        if samples.len() < 3 || !samples.iter().all(|(_, time)| *time > 0.0) {
            return None;
        }
        let weight = |time: f64| 1.0 / (time * time);
        let all: f64 = samples.iter().map(|(_, time)| weight(*time)).sum();
        let mean = |value: &dyn Fn(&(Ratio, f64)) -> f64| {
            samples.iter().map(|one| weight(one.1) * value(one)).sum::<f64>() / all
        };
        let x_mean = mean(&|(ratio, _)| term.of(*ratio));
        let y_mean = mean(&|(_, time)| *time);
        let x_variance = mean(&|(ratio, _)| (term.of(*ratio) - x_mean).powi(2));
        let y_variance = mean(&|(_, time)| (time - y_mean).powi(2));
        let covariance = mean(&|(ratio, time)| (term.of(*ratio) - x_mean) * (time - y_mean));
        if x_variance <= f64::EPSILON {
            return None;
        }
        let slope = covariance / x_variance;
        let explained = slope * covariance;
        let r_squared = if y_variance > 0.0 { explained / y_variance } else { 1.0 };
        Some(Self { term, base: y_mean - slope * x_mean, slope, r_squared })
    }

    /// Returns the time of a call at this ratio of the resource.
    #[must_use]
    pub fn time(&self, ratio: Ratio) -> f64 {
        self.base + self.slope * self.term.of(ratio)
    }

    /// Returns the form of the line.
    #[must_use]
    pub const fn term(&self) -> Term {
        self.term
    }

    /// Returns the part of the variance of the times, weighted as the errors are, that the line
    /// explains, from 0 to 1.
    #[must_use]
    pub const fn r_squared(&self) -> f64 {
        self.r_squared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(time: impl Fn(f64) -> f64) -> Vec<(Ratio, f64)> {
        [0.0, 0.2, 0.4, 0.6, 0.8].map(|used| (Ratio::of(used, 1.0), time(used))).to_vec()
    }

    #[test]
    fn times_on_a_line_are_predicted_exactly() {
        let prediction = Prediction::fit(&samples(|used| 3.0 + 2.0 * used)).unwrap();
        assert_eq!(prediction.term(), Term::Proportional);
        assert!((prediction.r_squared() - 1.0).abs() < 1e-12);
        assert!((prediction.time(Ratio::of(0.5, 1.0)) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn times_of_a_queue_are_predicted_by_its_term() {
        let prediction = Prediction::fit(&samples(|used| 1.0 / (1.0 - used))).unwrap();
        assert_eq!(prediction.term(), Term::Queue);
        assert!((prediction.time(Ratio::of(0.9, 1.0)) - 10.0).abs() < 1e-9);
        // A full resource has a finite time.
        assert!(prediction.time(Ratio::of(1.0, 1.0)).is_finite());
    }

    #[test]
    fn times_that_do_not_follow_the_ratio_are_not_explained() {
        let ratios = [0.0, 0.5, 1.0, 0.0, 0.5, 1.0].map(|used| Ratio::of(used, 1.0));
        let times = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let pairs: Vec<_> = ratios.into_iter().zip(times).collect();
        assert!(Prediction::fit(&pairs).unwrap().r_squared() < 0.2);
    }

    #[test]
    fn short_times_are_not_decided_by_a_long_one() {
        // By absolute errors, the last pair alone would decide: a call of 10 would be predicted to
        // take less than nothing.
        let times = [10.0, 11.0, 10.0, 11.0, 1000.0];
        let ratios = [0.0, 0.1, 0.4, 0.5, 1.0].map(|used| Ratio::of(used, 1.0));
        let pairs: Vec<_> = ratios.into_iter().zip(times).collect();
        let prediction = Prediction::fit(&pairs).unwrap();
        for (ratio, time) in &pairs[..4] {
            let predicted = prediction.time(*ratio);
            assert!((predicted / time - 1.0).abs() < 0.25, "{time}: {predicted}");
        }
    }

    #[test]
    fn too_little_is_no_prediction() {
        assert!(Prediction::fit(&samples(|used| used)[..2]).is_none());
        let same = [(Ratio::of(0.5, 1.0), 1.0); 4];
        assert!(Prediction::fit(&same).is_none());
        assert!(Prediction::fit(&samples(|used| used - 0.2)).is_none());
        assert!(Prediction::fit(&[]).is_none());
    }
}
