//! The evaluation limit.

use crate::limits::EVALUATION_STEPS_MAX;

/// The error of an evaluation that exceeded its limit, so that it gives no rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the assertions take more than {EVALUATION_STEPS_MAX} steps to evaluate, so they give nothing"
)]
pub struct Exhausted;

/// The steps that are left.
#[derive(Debug)]
pub(super) struct Meter {
    left: usize,
}

impl Meter {
    pub(super) const fn new() -> Self {
        Self { left: EVALUATION_STEPS_MAX }
    }

    /// Subtracts steps.
    pub(super) fn charge(&mut self, steps: usize) -> Result<(), Exhausted> {
        self.left = self.left.checked_sub(steps).ok_or(Exhausted)?;
        Ok(())
    }
}
