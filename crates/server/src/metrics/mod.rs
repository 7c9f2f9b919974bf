//! What the server did, for Prometheus: counted by the threads themselves, each in memory of its
//! own, and added up when somebody asks.

mod door;
mod histogram;
mod layer;
mod page;
mod recorder;
mod text;

pub use layer::Measured;
pub use page::{MetricsPage, PageError};
pub use recorder::{Metrics, forget_time};
pub use text::{append_counters, append_numbers};
