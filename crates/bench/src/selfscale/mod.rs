//! The self-scaling benchmark (Chen and Patterson 1994, over NFS as Byrd and Moser 2000).
//!
//! A workload is a [`Point`] of five parameters, the [`Axis`] of each. [`explore()`] looks for the
//! focal value of each axis around those of the others; [`scale()`] draws throughput over
//! uniqueBytes there and finds the plateaus (client cache, server cache, disk); a [`Model`] holds
//! one family of graphs for each plateau and predicts any workload from them; a [`SelfCheck`]
//! compares predictions with measured workloads, and warns if the shapes of the graphs depend on
//! each other.
//!
//! These modules know no files: they measure a [`Subject`]. The one that uses files is in `engine`.
//! `record` defines how a result stores a measurement: it has only the measured batches and the
//! choices made.

mod axis;
mod check;
mod curve;
mod engine;
mod focal_point;
mod measure;
mod model;
pub mod predict;
mod record;
mod run;
mod scale;
mod search_space;
mod worker;
mod workload;

pub use axis::{Axis, Point};
pub use check::{Check, SelfCheck};
pub use curve::Curve;
pub use focal_point::{Exploration, explore};
pub use measure::{Bench, Measured, Patience, Stage, Subject};
pub use model::{Family, Model, Prediction};
pub use record::Recorded;
pub use run::{Finding, run};
pub use scale::{Plateau, scale};
pub use search_space::Space;
pub use workload::Selfscale;
