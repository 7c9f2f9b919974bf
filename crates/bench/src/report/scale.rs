//! The mapping from values to positions on a drawing, and the positions of its grid lines.

/// A scale is logarithmic if its largest value is more than this many times its smallest.
const LOGARITHMIC_FROM: f64 = 25.0;

/// A scale along one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    from: f64,
    to: f64,
}

/// The kinds of scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Linear, from 0 on.
    Linear,
    /// Logarithmic.
    Logarithmic,
    /// Logarithmic if the values span more than a factor of 25, else linear.
    Fitting,
}

impl Scale {
    /// A scale for values, between two positions in pixels; `from` is the end of the small values.
    #[must_use]
    pub(super) fn new(kind: Kind, values: &[f64], (from, to): (f64, f64)) -> Self {
        let positive = || values.iter().copied().filter(|value| *value > 0.0 && value.is_finite());
        let least = positive().fold(f64::INFINITY, f64::min);
        let most = positive().fold(0.0, f64::max);
        let is_logarithmic = match kind {
            Kind::Linear => false,
            Kind::Logarithmic => true,
            Kind::Fitting => least.is_finite() && most > least * LOGARITHMIC_FROM,
        };
        let (low, high) = match (most > 0.0, is_logarithmic) {
            (false, _) => (if is_logarithmic { 0.1 } else { 0.0 }, 1.0),
            (true, true) => (least / 1.25, most * 1.25),
            (true, false) => (0.0, most * 1.06),
        };
        Self { low, high, is_logarithmic, from, to }
    }

    /// A scale between two values.
    #[must_use]
    pub(super) fn between(
        is_logarithmic: bool,
        (low, high): (f64, f64),
        (from, to): (f64, f64),
    ) -> Self {
        Self { low, high, is_logarithmic, from, to }
    }

    /// Returns whether the scale is logarithmic.
    #[must_use]
    pub(super) const fn is_logarithmic(&self) -> bool {
        self.is_logarithmic
    }

    /// Returns whether a value is on the scale.
    #[must_use]
    pub(super) fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The position of a value; a value beyond an end has the position of the end.
    #[must_use]
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = match self.is_logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + (self.to - self.from) * part
    }

    /// Returns the values of the grid lines: about `count` round numbers.
    #[must_use]
    pub(super) fn ticks(&self, count: usize) -> Vec<f64> {
        if self.is_logarithmic { self.decades(count) } else { self.steps(count) }
    }

    fn steps(&self, count: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / count.max(1) as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|each| each * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }

    fn decades(&self, count: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (self.high / self.low).log10().max(0.1);
        let each: &[f64] = match count as f64 / decades {
            many if many >= 3.0 => &[1.0, 2.0, 5.0],
            some if some >= 2.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let skip = (decades / (1.5 * count.max(1) as f64)).ceil().max(1.0) as usize;
        (first..=last)
            .step_by(skip)
            .flat_map(|decade| each.iter().map(move |digit| digit * 10_f64.powi(decade)))
            .filter(|tick| self.covers(*tick))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_scales_begin_at_zero_with_round_steps() {
        let scale = Scale::new(Kind::Fitting, &[40.0, 87.0], (0.0, 100.0));
        assert!(!scale.is_logarithmic());
        assert_eq!(scale.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(scale.at(0.0), 0.0);
        assert!(scale.at(87.0) > 90.0 && scale.at(87.0) <= 100.0);
    }

    #[test]
    fn wide_spans_are_logarithmic() {
        let scale = Scale::new(Kind::Fitting, &[1e-6, 1.0], (0.0, 60.0));
        assert!(scale.is_logarithmic());
        let ticks = scale.ticks(6);
        assert!((4..=8).contains(&ticks.len()), "{ticks:?}");
        let gap = scale.at(1e-3) - scale.at(1e-4);
        assert!((scale.at(1e-2) - scale.at(1e-3) - gap).abs() < 1e-9);
    }

    #[test]
    fn no_values_and_values_outside_are_drawn_within() {
        let none = Scale::new(Kind::Fitting, &[], (0.0, 10.0));
        assert!(none.at(5.0).is_finite() && !none.ticks(4).is_empty());
        let some = Scale::new(Kind::Logarithmic, &[1.0, 100.0], (10.0, 0.0));
        assert_eq!((some.at(1e9), some.at(0.0)), (0.0, 10.0));
    }
}
