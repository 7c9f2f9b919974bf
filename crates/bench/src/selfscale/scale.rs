//! Throughput over uniqueBytes, and its plateaus: the regions of about equal throughput.

use anyhow::Result;

use super::{Axis, Bench, Curve, Point, Space};
use crate::statistics::{median, segments};

/// Fewest points of a plateau.
const POINTS_MIN: usize = 3;

/// Differences of throughput, as a part, that do not make a plateau of their own.
const LEVEL_NOISE: f64 = 0.08;

/// The points of a plateau are within this part of its level; other points at its ends belong to
/// the transition.
const LEVEL_WITHIN: f64 = 0.15;

/// Halvings of a step between plateaus by which it is located.
const HALVINGS: usize = 2;

/// A region of about equal throughput over uniqueBytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// Its smallest working set, in bytes.
    pub low: f64,
    /// The largest working set of the plateau, in bytes.
    pub high: f64,
    /// The measured working set in the (geometric) middle: the focal value of the plateau.
    pub focal: f64,
    /// The throughput of the plateau, the median of its points, in bytes a second.
    pub level: f64,
    /// True if all points are within 15 % of the level; otherwise the plateau is a slope.
    pub is_flat: bool,
}

/// Draws throughput over uniqueBytes around a point, with more points at steps, and finds plateaus.
///
/// # Errors
/// Those of the subject.
pub fn scale(bench: &mut Bench<'_>, space: &Space, around: &Point) -> Result<Vec<Plateau>> {
    let axis = Axis::UniqueBytes;
    bench.curve(around, axis, &space.fine_grid(axis))?;
    let coarse = Curve::through(around, axis, bench.measured());
    for step in plateaus(&coarse).windows(2) {
        narrow(bench, around, (step[0], step[1]))?;
    }
    Ok(plateaus(&Curve::through(around, axis, bench.measured())))
}

/// Halves the gap between two plateaus, always on the side where the step is.
fn narrow(bench: &mut Bench<'_>, around: &Point, (left, right): (Plateau, Plateau)) -> Result<()> {
    let (mut low, mut high) = (left.high, right.low);
    let border = (left.level * right.level).sqrt();
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt().round();
        if middle <= low || middle >= high {
            break;
        }
        let throughput = bench.throughput(&around.with(Axis::UniqueBytes, middle))?;
        let is_left = (throughput > border) == (left.level > border);
        if is_left { low = middle } else { high = middle }
    }
    Ok(())
}

/// The plateaus of a graph, by a fit of change points to the logarithms of throughput.
pub(super) fn plateaus(curve: &Curve) -> Vec<Plateau> {
    let logarithms: Vec<f64> = curve.points().iter().map(|(_, value)| value.ln()).collect();
    // A change within the noise is no step: half a 95 % interval is two deviations.
    let noise = LEVEL_NOISE.max(curve.spread() / 2.0);
    let found = segments(&logarithms, POINTS_MIN, noise);
    found.into_iter().filter_map(|segment| plateau(&curve.points()[segment.range])).collect()
}

fn plateau(points: &[(f64, f64)]) -> Option<Plateau> {
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let level = median(&values)?;
    let points = without_transition(points, level);
    let (low, high) = (points.first()?.0, points.last()?.0);
    let middle = (low * high).sqrt().ln();
    let away = |point: &&(f64, f64)| (point.0.ln() - middle).abs();
    let focal = points.iter().min_by(|a, b| away(a).total_cmp(&away(b)))?.0;
    let is_flat = points.iter().all(|point| is_on(level, point));
    Some(Plateau { low, high, focal, level, is_flat })
}

fn is_on(level: f64, point: &(f64, f64)) -> bool {
    (point.1 / level - 1.0).abs() <= LEVEL_WITHIN
}

/// Leaves out points at the ends that are not on the level, unless too few would be left.
fn without_transition(points: &[(f64, f64)], level: f64) -> &[(f64, f64)] {
    let first = points.iter().position(|point| is_on(level, point)).unwrap_or(0);
    let last = points.iter().rposition(|point| is_on(level, point)).unwrap_or(0);
    if last - first + 1 < POINTS_MIN { points } else { &points[first..=last] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_transition_belongs_to_no_plateau() {
        let throughput = [100.0, 102.0, 99.0, 101.0, 60.0, 10.0, 10.1, 9.9];
        let points = throughput.iter().enumerate();
        let points = points.map(|(n, value)| (2_f64.powi(n as i32), *value)).collect();
        let found = plateaus(&Curve::new(Axis::UniqueBytes, points));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].low, found[0].high), (1.0, 8.0));
        assert_eq!((found[1].low, found[1].high), (32.0, 128.0));
        assert_eq!((found[1].focal, found[1].level), (64.0, 10.0));
        assert!(found.iter().all(|plateau| plateau.is_flat));
    }

    #[test]
    fn a_short_curve_is_one_region_and_a_slope_is_called_one() {
        let slope: Vec<_> = (0..5).map(|n| (2_f64.powi(n), 100.0 / 1.3_f64.powi(n))).collect();
        let found = plateaus(&Curve::new(Axis::UniqueBytes, slope));
        assert_eq!(found.len(), 1);
        assert!(!found[0].is_flat);
        assert!(plateaus(&Curve::new(Axis::UniqueBytes, vec![])).is_empty());
    }
}
