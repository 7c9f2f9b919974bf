//! The focal vector: for each parameter, the value at 75 % of the maximum, with the others at their
//! focal values.

use anyhow::Result;

use super::{Axis, Bench, Point, Space};

/// Most turns over all parameters; two or three are usual.
const TURNS_MAX: usize = 6;

/// The result of the exploration.
#[derive(Debug, Clone, PartialEq)]
pub struct Exploration {
    /// The focal vector.
    pub focal: Point,
    /// Turns over all parameters.
    pub turns: usize,
    /// True if no value moved in the last turn.
    pub is_settled: bool,
}

/// Measures each parameter around the focal values of the others until no focal value moves.
///
/// Values are those of the grid, so the exploration ends. It stops unsettled if a vector occurs
/// again, after a few turns, or when it is late.
///
/// # Errors
/// Those of the subject.
pub fn explore(bench: &mut Bench<'_>, space: &Space) -> Result<Exploration> {
    let mut seen = vec![space.start()];
    for turns in 1..=TURNS_MAX {
        let before = seen[seen.len() - 1];
        let focal = turn(bench, space, before)?;
        if focal == before {
            return Ok(Exploration { focal, turns, is_settled: true });
        }
        if seen.contains(&focal) || bench.is_late() {
            return Ok(Exploration { focal, turns, is_settled: false });
        }
        seen.push(focal);
    }
    Ok(Exploration { focal: seen[seen.len() - 1], turns: TURNS_MAX, is_settled: false })
}

fn turn(bench: &mut Bench<'_>, space: &Space, mut focal: Point) -> Result<Point> {
    for axis in Axis::ALL {
        let curve = bench.curve(&focal, axis, space.grid(axis))?;
        if let Some(value) = curve.focal() {
            focal = focal.with(axis, value);
        }
    }
    Ok(focal)
}
