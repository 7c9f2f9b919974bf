//! Reports for administrators and metrics.

mod held;
mod stats;
mod totals;

pub use held::{Awaited, ClientSummary, HeldState, StateDetails, Waiting};
pub use stats::{Census, Occupied};
pub use totals::Totals;
