//! Throughput over one parameter, with the others fixed.

use super::{Axis, Measured, Point};
use crate::statistics::median;

/// The focal value is the one at which throughput reaches this part of its maximum (Chen and
/// Patterson).
pub(super) const FOCAL_PART: f64 = 0.75;

/// A graph: points of (value, throughput) in ascending order of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    axis: Axis,
    points: Vec<(f64, f64)>,
    spread: f64,
}

impl Curve {
    /// The graph through points in any order; points without positive throughput are left out.
    #[must_use]
    pub fn new(axis: Axis, mut points: Vec<(f64, f64)>) -> Self {
        points.retain(|(_, throughput)| *throughput > 0.0);
        points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0 == b.0);
        Self { axis, points, spread: 0.0 }
    }

    /// The graph through every measured point that differs from `around` on an axis alone.
    #[must_use]
    pub fn through(around: &Point, axis: Axis, measured: &[(Point, Measured)]) -> Self {
        let beside = || measured.iter().filter(|(point, _)| point.is_beside(around, axis));
        let points = beside().map(|(point, found)| (point.get(axis), found.throughput()));
        let spreads: Vec<f64> = beside().map(|(_, found)| found.spread()).collect();
        let spread = median(&spreads).unwrap_or(0.0);
        Self { spread, ..Self::new(axis, points.collect()) }
    }

    /// Returns the uncertainty of its points: half their 95 % interval as a part, the median of
    /// all.
    #[must_use]
    pub const fn spread(&self) -> f64 {
        self.spread
    }

    /// Returns the axis of the parameter.
    #[must_use]
    pub const fn axis(&self) -> Axis {
        self.axis
    }

    /// The points of the graph.
    #[must_use]
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Returns whether a value lies between the ends of the graph.
    #[must_use]
    pub fn covers(&self, value: f64) -> bool {
        let ends = self.points.first().zip(self.points.last());
        ends.is_some_and(|(first, last)| first.0 <= value && value <= last.0)
    }

    /// The throughput at a value: interpolated between points, constant beyond the ends. `None` if
    /// there are no points.
    ///
    /// Over sizes and fractions, times for a byte add up (a request costs a fixed part and a part
    /// for each byte; a mix costs the sum of its parts), so times are interpolated, over 1/size and
    /// over the fraction. Over the other two parameters, logarithms are interpolated over
    /// logarithms.
    #[must_use]
    pub fn at(&self, value: f64) -> Option<f64> {
        let after = self.points.partition_point(|(place, _)| *place < value);
        let high = self.points.get(after).or(self.points.last())?;
        let low = if after == 0 { high } else { &self.points[after - 1] };
        if low.0 == high.0 || value >= high.0 {
            return Some(high.1);
        }
        let part = (self.warp(value) - self.warp(low.0)) / (self.warp(high.0) - self.warp(low.0));
        let between = |low: f64, high: f64| low + (high - low) * part;
        Some(match self.axis {
            Axis::UniqueBytes | Axis::ProcessNum => between(low.1.ln(), high.1.ln()).exp(),
            _ => 1.0 / between(1.0 / low.1, 1.0 / high.1),
        })
    }

    fn warp(&self, value: f64) -> f64 {
        match self.axis {
            Axis::UniqueBytes | Axis::ProcessNum => value.ln(),
            Axis::SizeMean => -1.0 / value,
            Axis::ReadFrac | Axis::SeqFrac => value,
        }
    }

    /// The focal value: the value at which the curve reaches 75 % of its maximum.
    ///
    /// Over uniqueBytes throughput falls, so the focal value is the last point before the curve
    /// falls below that. Over the other parameters it is the first point that reaches it, or the
    /// last one if the curve only falls. A curve that is above it everywhere has no such point: the
    /// focal value is then 0.5 for a fraction, 1 for processes, and the middle point for bytes.
    #[must_use]
    pub fn focal(&self) -> Option<f64> {
        let most = self.points.iter().map(|(_, throughput)| *throughput).reduce(f64::max)?;
        let reaches = |point: &&(f64, f64)| point.1 >= FOCAL_PART * most;
        let first = self.points.iter().find(reaches)?.0;
        let last = self.points.iter().rev().find(reaches)?.0;
        let rises = first > self.points.first()?.0;
        let falls = last < self.points.last()?.0;
        Some(match (rises, falls) {
            (false, false) => self.middle()?,
            (true, true) if self.axis == Axis::UniqueBytes => last,
            (true, _) => first,
            (false, true) => last,
        })
    }

    fn middle(&self) -> Option<f64> {
        match self.axis {
            Axis::ReadFrac | Axis::SeqFrac => Some(0.5),
            Axis::ProcessNum => self.points.first().map(|point| point.0),
            _ => self.points.get(self.points.len() / 2).map(|point| point.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(axis: Axis, points: &[(f64, f64)]) -> Curve {
        Curve::new(axis, points.to_vec())
    }

    #[test]
    fn a_rising_curve_has_its_focal_value_where_it_first_reaches_75_percent() {
        let sizes = curve(Axis::SizeMean, &[(1e3, 10.0), (4e3, 40.0), (16e3, 80.0), (64e3, 100.0)]);
        assert_eq!(sizes.focal(), Some(16e3));
    }

    #[test]
    fn a_falling_curve_has_it_at_the_last_point_before() {
        let bytes = curve(Axis::UniqueBytes, &[(1e6, 90.0), (2e6, 100.0), (4e6, 80.0), (8e6, 9.0)]);
        assert_eq!(bytes.focal(), Some(4e6));
        let reads = curve(Axis::ReadFrac, &[(0.0, 100.0), (0.5, 80.0), (1.0, 50.0)]);
        assert_eq!(reads.focal(), Some(0.5));
    }

    #[test]
    fn a_peak_over_bytes_counts_where_it_falls_and_elsewhere_where_it_rises() {
        let points = [(1.0, 10.0), (2.0, 95.0), (4.0, 100.0), (8.0, 90.0), (16.0, 10.0)];
        assert_eq!(curve(Axis::UniqueBytes, &points).focal(), Some(8.0));
        assert_eq!(curve(Axis::ProcessNum, &points).focal(), Some(2.0));
    }

    #[test]
    fn a_flat_curve_distinguishes_nothing() {
        assert_eq!(curve(Axis::SeqFrac, &[(0.0, 99.0), (1.0, 100.0)]).focal(), Some(0.5));
        let flat = [(1.0, 9.0), (2.0, 10.0), (4.0, 9.0)];
        assert_eq!(curve(Axis::ProcessNum, &flat).focal(), Some(1.0));
        assert_eq!(curve(Axis::SizeMean, &flat).focal(), Some(2.0));
        assert_eq!(curve(Axis::SizeMean, &[]).focal(), None);
    }

    #[test]
    fn interpolation_is_exact_where_times_add_up() {
        let of_size = |size: f64| size / (1e-3 + size * 1e-8);
        let sizes = curve(Axis::SizeMean, &[(1e3, of_size(1e3)), (1e6, of_size(1e6))]);
        assert!((sizes.at(3e4).unwrap() / of_size(3e4) - 1.0).abs() < 1e-12);
        let of_mix = |reads: f64| 1.0 / (reads / 500.0 + (1.0 - reads) / 50.0);
        let mix = curve(Axis::ReadFrac, &[(0.0, of_mix(0.0)), (1.0, of_mix(1.0))]);
        assert!((mix.at(0.7).unwrap() / of_mix(0.7) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn beyond_its_ends_a_curve_stays_level_and_says_so() {
        let bytes = curve(Axis::UniqueBytes, &[(1e6, 100.0), (4e6, 25.0)]);
        assert_eq!((bytes.at(1.0), bytes.at(1e9)), (Some(100.0), Some(25.0)));
        assert!((bytes.at(2e6).unwrap() - 50.0).abs() < 1e-9);
        assert!(bytes.covers(4e6) && !bytes.covers(4.1e6));
    }
}
