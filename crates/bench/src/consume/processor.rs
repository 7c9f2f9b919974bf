use std::hint::black_box;
use std::thread::scope;

use anyhow::{Context, Result};

use super::duty::Duty;

/// Steps of one piece of work: some tens of microseconds.
const PIECE_STEPS: u64 = 50_000;

/// Keeps as many processors busy as there are threads.
///
/// # Errors
/// A thread panicked.
pub(super) fn consume(duty: Duty, threads: usize) -> Result<()> {
    scope(|scope| {
        let spinning: Vec<_> =
            (0..threads).map(|_| scope.spawn(move || duty.keep(compute))).collect();
        spinning
            .into_iter()
            .try_for_each(|thread| thread.join().ok().context("a consumer panicked")?)
    })
}

fn compute() -> Result<()> {
    let sum = (0..PIECE_STEPS).fold(0_u64, |sum, step| sum.wrapping_mul(31) ^ black_box(step));
    black_box(sum);
    Ok(())
}
