//! Change points: where a series steps from one level to another.

use std::ops::Range;

/// A range of a series on one level.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The values that belong to it.
    pub range: Range<usize>,
    /// Their mean.
    pub level: f64,
}

/// Splits a series into ranges of one level each, every one at least `least` values long.
///
/// The fit is the piecewise constant one with the smallest sum of squares and a price for each step
/// (an information criterion as of Schwarz 1978, at one and a half times its price, because where a
/// step lies is chosen too: Zhang and Siegmund 2007), found by dynamic programming over all splits.
/// `noise` is the deviation of values around their level that is not worth a step. A series too
/// short for two ranges is one.
#[must_use]
pub fn segments(values: &[f64], least: usize, noise: f64) -> Vec<Segment> {
    let least = least.max(1);
    if values.len() < 2 * least {
        return level(values, 0..values.len()).into_iter().collect();
    }
    let fit = Fit::of(values, least, price(values.len(), noise));
    let mut ends = vec![values.len()];
    while let Some(start) = ends.last().map(|end| fit.starts[*end]).filter(|start| *start > 0) {
        ends.push(start);
    }
    ends.push(0);
    ends.reverse();
    ends.windows(2).filter_map(|pair| level(values, pair[0]..pair[1])).collect()
}

fn level(values: &[f64], range: Range<usize>) -> Option<Segment> {
    let level = super::mean(&values[range.clone()])?;
    Some(Segment { range, level })
}

/// Returns the reduction of the sum of squares that justifies a step.
fn price(count: usize, noise: f64) -> f64 {
    3.0 * (count as f64).ln() * noise * noise
}

/// The best split of the first n values, for every n.
struct Fit {
    /// The start of the last range in the best split of the first n values.
    starts: Vec<usize>,
}

impl Fit {
    fn of(values: &[f64], least: usize, price: f64) -> Self {
        let sums = Sums::of(values);
        let mut costs = vec![f64::INFINITY; values.len() + 1];
        let mut starts = vec![0; values.len() + 1];
        costs[0] = 0.0;
        for end in least..=values.len() {
            for start in 0..=end - least {
                let cost = costs[start] + sums.squares(start..end) + price;
                if cost < costs[end] {
                    costs[end] = cost;
                    starts[end] = start;
                }
            }
        }
        Self { starts }
    }
}

/// Running sums, from which the squares of any range are computed at once.
struct Sums {
    values: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn of(values: &[f64]) -> Self {
        let mut sums = Self { values: vec![0.0], squares: vec![0.0] };
        let (mut sum, mut square) = (0.0, 0.0);
        for value in values {
            sum += value;
            square += value * value;
            sums.values.push(sum);
            sums.squares.push(square);
        }
        sums
    }

    /// The sum of squares around the mean of a range.
    fn squares(&self, range: Range<usize>) -> f64 {
        let sum = self.values[range.end] - self.values[range.start];
        let square = self.squares[range.end] - self.squares[range.start];
        (square - sum * sum / range.len() as f64).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;

    fn steps(levels: &[(f64, usize)], deviation: f64, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let each = levels.iter().flat_map(|(level, count)| vec![*level; *count]);
        each.map(|level| level + deviation * rng.normal()).collect()
    }

    #[test]
    fn three_levels_are_found_where_they_are() {
        let series = steps(&[(9.0, 8), (7.0, 5), (3.0, 6)], 0.05, 1);
        let found = segments(&series, 3, 0.08);
        let ranges: Vec<_> = found.iter().map(|segment| segment.range.clone()).collect();
        assert_eq!(ranges, [0..8, 8..13, 13..19]);
        assert!((found[1].level - 7.0).abs() < 0.1);
    }

    #[test]
    fn one_level_is_one_stretch_in_all_but_a_few_draws() {
        let split = |seed: &u64| segments(&steps(&[(5.0, 20)], 0.05, *seed), 3, 0.05).len() > 1;
        let wrong = (0..200).filter(split).count();
        assert!(wrong <= 10, "{wrong} of 200");
    }

    #[test]
    fn a_short_series_is_one_stretch_and_an_empty_one_none() {
        assert_eq!(segments(&[1.0, 9.0, 1.0], 2, 0.1).len(), 1);
        assert!(segments(&[], 3, 0.1).is_empty());
    }

    /// The price of a split, for the comparison with other splits.
    fn cost(values: &[f64], found: &[Segment], noise: f64) -> f64 {
        let squares = |s: &Segment| -> f64 {
            values[s.range.clone()].iter().map(|value| (value - s.level).powi(2)).sum()
        };
        found.iter().map(|segment| squares(segment) + price(values.len(), noise)).sum()
    }

    proptest! {
        #[test]
        fn no_single_step_moved_or_left_out_is_better(
            values in prop::collection::vec(0.0..4.0_f64, 6..24),
            noise in 0.05..1.0_f64,
        ) {
            let best = segments(&values, 2, noise);
            let covered: usize = best.iter().map(|segment| segment.range.len()).sum();
            prop_assert_eq!(covered, values.len());
            prop_assert!(best.iter().all(|segment| segment.range.len() >= 2));
            for cut in 2..=values.len() - 2 {
                let two = [0..cut, cut..values.len()];
                let other: Vec<_> = two.into_iter().filter_map(|r| level(&values, r)).collect();
                prop_assert!(cost(&values, &best, noise) <= cost(&values, &other, noise) + 1e-9);
            }
            let whole: Vec<_> = level(&values, 0..values.len()).into_iter().collect();
            prop_assert!(cost(&values, &best, noise) <= cost(&values, &whole, noise) + 1e-9);
        }
    }
}
