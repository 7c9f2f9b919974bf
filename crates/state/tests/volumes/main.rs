//! The state of a volume moves from one engine to another, as a value and as bytes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod bounds;
mod bytes;
mod clientids;
mod contradictions;
mod exports;
mod forgotten;
#[path = "../introduction/mod.rs"]
mod introduction;
mod joins;
mod moves;
mod names;
mod refusals;
mod returns;
mod site;
