//! The whole benchmark on one subject.

use anyhow::{Context, Result};

use super::{
    Axis, Bench, Exploration, Family, Measured, Model, Patience, Point, SelfCheck, Space, Stage,
    Subject, explore, scale,
};
use crate::rng::Rng;

/// The findings of the benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The focal vector, and how it was reached.
    pub exploration: Exploration,
    /// Plateaus with their graphs.
    pub model: Model,
    /// The check of the predictions, if one was asked for.
    pub check: Option<SelfCheck>,
}

/// Explores, draws the graphs, and checks the predictions on `checks` workloads chosen by `seed`.
///
/// # Errors
/// Those of the subject, or no workload gave any throughput.
pub fn run(
    subject: &mut dyn Subject,
    space: &Space,
    patience: Patience,
    (checks, seed): (usize, u64),
) -> Result<Finding> {
    let mut bench = Bench::new(subject, patience);
    let exploration = explore(&mut bench, space)?;
    let plateaus = scale(&mut bench, space, &exploration.focal)?;
    let mut families = Vec::new();
    for plateau in plateaus {
        let focal = exploration.focal.with(Axis::UniqueBytes, plateau.focal);
        draw_family(&mut bench, space, &focal)?;
        families.extend(Family::of(plateau, focal, bench.measured()));
    }
    let model = Model::new(families).context("no workload gave any throughput: nothing to draw")?;
    let checked = check(&mut bench, space, (checks, seed))?;
    let check = SelfCheck::of(&model, &checked);
    Ok(Finding { exploration, model, check })
}

/// Measures the points of the graphs of a plateau.
fn draw_family(bench: &mut Bench<'_>, space: &Space, focal: &Point) -> Result<()> {
    for axis in Axis::ALL.into_iter().filter(|axis| *axis != Axis::UniqueBytes) {
        bench.curve(focal, axis, &space.fine_grid(axis))?;
    }
    Ok(())
}

fn check(
    bench: &mut Bench<'_>,
    space: &Space,
    (checks, seed): (usize, u64),
) -> Result<Vec<(Point, Measured)>> {
    let mut rng = Rng::new(seed);
    let points: Vec<Point> = (0..checks).map(|_| space.draw(&mut rng)).collect();
    let mut checked = Vec::new();
    for at in points {
        if bench.is_late() {
            break;
        }
        checked.push((at, bench.measure(Stage::Check, &at)?));
    }
    Ok(checked)
}
