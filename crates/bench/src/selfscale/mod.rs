//! The self-scaling benchmark (Chen and Patterson 1994, over NFS as Byrd and Moser 2000).
//!
//! A workload is a [`Point`] of five parameters, the [`Axis`] of each. [`explore()`] looks for the
//! focal value of each axis around those of the others; [`scale()`] draws throughput over
//! uniqueBytes there and finds the plateaus (client cache, server cache, disk); a [`Model`] holds
//! one family of graphs for each plateau and predicts any workload from them; a [`SelfCheck`] holds
//! predictions against workloads that are measured too, and warns where the shapes are not
//! independent.
//!
//! Nothing here knows files: what is measured is a [`Subject`]. The one that does is in `engine`.
//! `record` says how a result holds it: only measured batches and the choices made.

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
