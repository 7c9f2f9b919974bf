//! Metrics for Prometheus. Each thread counts in memory of its own; the counts are added up when
//! the page is read.

mod histogram;
mod http;
mod layer;
mod procedures;
mod recorder;
mod sums;
mod text;

pub use http::serve_metrics;
pub use layer::Measured;
pub use procedures::{ProcedureStats, Readings};
pub(crate) use recorder::take_service_nanoseconds;
pub use recorder::{Metrics, forget_time};
pub use text::{append_counters, append_numbers, append_ratios};
