//! Runs workloads on targets in turns, and stores the result.

mod cleanup;
mod reset;
mod run;

pub use reset::Resets;
pub use run::{Chosen, Plan, is_interrupt, now, run, run_on};
