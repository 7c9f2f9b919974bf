//! What the server did, for Prometheus: counted by the threads themselves, each in memory of its
//! own, and added up when somebody asks.

mod connection_limit;
mod histogram;
mod http;
mod layer;
mod recorder;
mod text;

pub use http::{MetricsPage, PageError};
pub use layer::Measured;
pub use recorder::{Metrics, forget_time};
pub use text::{append_counters, append_numbers};
