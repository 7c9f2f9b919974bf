//! The check of the model by workloads that are both predicted and measured.

use super::{Axis, Family, Measured, Model, Point, Prediction};
use crate::statistics::{mean, quantile};

/// A prediction is off if its error exceeds this part, in addition to the intervals of the check
/// and of the graphs.
const OFF_ABOVE: f64 = 0.15;

/// If half the 95 % interval of a prediction is more than this part, nothing can be said about the
/// shapes of the graphs.
const NOISE_MAX: f64 = 0.5;

/// With more than this part of the predictions off, the shapes are not independent.
const OFF_PART_MAX: f64 = 0.25;

/// Fewest checks from which anything can be concluded.
const CHECKS_MIN: usize = 4;

/// Fewest checks from which a pair of parameters can be named, and the least correlation for it.
const NAMED_FROM: (usize, f64) = (8, 0.6);

/// A workload that was predicted and measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The workload.
    pub at: Point,
    /// The measured throughput.
    pub measured: Measured,
    /// The predicted throughput.
    pub prediction: Prediction,
}

/// The results of the checks of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfCheck {
    /// All comparisons of a prediction with a measurement.
    pub checks: Vec<Check>,
    /// The median of the errors, as a part.
    pub error_median: f64,
    /// The error that nine in ten predictions do not exceed.
    pub error_p90: f64,
    /// The median without workloads between plateaus, where predictions are known to be bad.
    pub error_median_on_plateaus: Option<f64>,
    /// Warnings about the predictions.
    pub warnings: Vec<String>,
}

impl Check {
    /// Returns the error of the prediction as a part of the measured value.
    #[must_use]
    pub fn error(&self) -> f64 {
        (self.prediction.throughput / self.measured.throughput() - 1.0).abs()
    }

    fn is_off(&self, model: &Model) -> bool {
        let noise = self.measured.spread().hypot(model.families()[self.prediction.family].spread());
        self.rest().abs() > OFF_ABOVE + noise
    }

    /// The logarithm of the part of the throughput that the product of the shapes does not explain.
    fn rest(&self) -> f64 {
        (self.measured.throughput() / self.prediction.throughput).ln()
    }
}

impl SelfCheck {
    /// Compares a model with measured workloads; `None` if there are none.
    #[must_use]
    pub fn of(model: &Model, measured: &[(Point, Measured)]) -> Option<Self> {
        let usable = measured.iter().filter(|(_, measured)| measured.throughput() > 0.0);
        let checks: Vec<Check> = usable
            .map(|(at, found)| Check {
                at: *at,
                measured: found.clone(),
                prediction: model.predict(at),
            })
            .collect();
        let errors: Vec<f64> = checks.iter().map(Check::error).collect();
        let on_plateaus = checks.iter().filter(|check| !check.prediction.is_between);
        let errors_on: Vec<f64> = on_plateaus.map(Check::error).collect();
        Some(Self {
            error_median: quantile(&errors, 0.5)?,
            error_p90: quantile(&errors, 0.9)?,
            error_median_on_plateaus: quantile(&errors_on, 0.5),
            warnings: warnings(model, &checks),
            checks,
        })
    }

    /// Returns whether predictions are correct within the errors given.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.warnings.is_empty()
    }
}

fn warnings(model: &Model, checks: &[Check]) -> Vec<String> {
    let (between, on): (Vec<&Check>, Vec<&Check>) =
        checks.iter().partition(|check| check.prediction.is_between);
    if on.len() < CHECKS_MIN {
        let few = format!(
            "only {} workloads were checked on plateaus ({} between them): the error is a guess",
            on.len(),
            between.len()
        );
        return vec![few];
    }
    let noise = model.families().iter().map(Family::spread).fold(0.0, f64::max);
    if noise > NOISE_MAX {
        return vec![format!(
            "too noisy to predict from: the graphs' own intervals make a prediction uncertain by \
             {:.0} %. Measure on a machine that does nothing else, or with longer batches \
             (--batch-seconds, --batches-max).",
            noise * 100.0
        )];
    }
    let off = on.iter().filter(|check| check.is_off(model)).count();
    if off as f64 <= OFF_PART_MAX * on.len() as f64 {
        return Vec::new();
    }
    let pair = culprits(model, &on).map_or(String::new(), |(a, b)| {
        format!(" Most of it goes with {} and {} together.", a.title(), b.title())
    });
    vec![format!(
        "the shapes are not independent: {off} of {} predictions on plateaus miss by more than \
         {:.0} %. The effect of one parameter depends on another here, so a product of graphs does \
         not hold; do not trust predictions far from a focal point.{pair}",
        on.len(),
        OFF_ABOVE * 100.0
    )]
}

/// The pair of parameters whose joint distance from the focal point correlates best with the part
/// that the model does not explain.
fn culprits(model: &Model, checks: &[&Check]) -> Option<(Axis, Axis)> {
    let (count_min, clear) = NAMED_FROM;
    if checks.len() < count_min {
        return None;
    }
    let rests: Vec<f64> = checks.iter().map(|check| check.rest()).collect();
    let strength = |a: Axis, b: Axis| {
        let joint: Vec<f64> = checks.iter().map(|check| joint(model, check, (a, b))).collect();
        correlation(&rests, &joint).map_or(0.0, f64::abs)
    };
    let places = 0..Axis::COUNT;
    let pairs =
        places.flat_map(|a| (a + 1..Axis::COUNT).map(move |b| (Axis::ALL[a], Axis::ALL[b])));
    let best = pairs.max_by(|x, y| strength(x.0, x.1).total_cmp(&strength(y.0, y.1)))?;
    (strength(best.0, best.1) >= clear).then_some(best)
}

fn joint(model: &Model, check: &Check, (a, b): (Axis, Axis)) -> f64 {
    let focal = &model.families()[check.prediction.family].focal;
    let away = |axis: Axis| {
        let (here, there) = (check.at.get(axis), focal.get(axis));
        if axis.is_fraction() { here - there } else { (here / there).ln() }
    };
    away(a) * away(b)
}

fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mean_a, mean_b) = (mean(a)?, mean(b)?);
    let products = |x: &[f64], mean_x: f64, y: &[f64], mean_y: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum()
    };
    let own = products(a, mean_a, a, mean_a) * products(b, mean_b, b, mean_b);
    (own > 0.0).then(|| products(a, mean_a, b, mean_b) / own.sqrt())
}
