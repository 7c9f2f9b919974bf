//! The load of a server: each resource as a ratio of its capacity, averaged over time, and the
//! resource that limits the server.
//!
//! **Answers:** how much of each resource is in use, now and over the last second, minute and five
//! minutes; which resource is the bottleneck; which client or export uses how much; by how much
//! calls would get shorter if clients moved to another server.
//!
//! **May not know:** how samples are taken. It reads no file and no clock: texts of the kernel and
//! the time are arguments.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod auto_moves;
mod average;
mod bottleneck;
mod forecast;
mod host;
mod limits;
mod model;
mod operations;
mod prediction;
mod ratio;
mod resource;
mod server_load;
mod shares;
mod waiting;

pub use auto_moves::{AutoBounds, AutoMoves, PossibleMove};
pub use average::Averages;
pub use bottleneck::bottleneck;
pub use forecast::{Doubt, Forecast};
pub use host::{DiskRates, HostSample, HostTexts};
pub use model::{LoadModel, Occupancy};
pub use operations::{OperationCounts, OperationLoad, Operations};
pub use prediction::{Prediction, Term};
pub use ratio::Ratio;
pub use resource::Resource;
pub use server_load::{Amount, Demand, ServerLoad};
pub use shares::{Rates, Shares, Usage, UserShare};
