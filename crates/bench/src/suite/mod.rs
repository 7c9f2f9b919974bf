//! The measuring suite, `comity bench`: workloads on targets, and what came of them.
//!
//! - A [`Workload`] says what is done and which [`Parameter`]s it has. Each of its runs is one
//!   round on one [`Target`], and leaves [`Sample`]s and [`Latency`] distributions in a
//!   [`Context`].
//! - A [`Target`] is what is measured. It opens [`Files`], the operations on files, for each
//!   worker; a [`Driver`] around them times every operation, checks every byte read and obeys an
//!   interrupt.
//! - The runner lets the targets take turns, round by round, and keeps an [`Outcome`] in the result
//!   directory ([`Store`]) after each.

mod allotment;
mod clear;
pub mod command;
mod content;
mod context;
mod driver;
mod environment;
mod files;
mod history;
mod kind;
mod outcome;
mod parameter;
mod progress;
mod reset;
mod run;
mod sample;
mod stopwatch;
mod store;
mod tally;
mod target;
mod workload;

pub use content::Content;
pub(crate) use context::joined;
pub use context::{Context, Interrupt, Interrupted, Reset};
pub use driver::{Driver, OpenFile};
pub use environment::memory_available_bytes;
pub use files::{Access, Entry, FileId, FileKind, Files, LockKind, Metadata, Range, Wait};
pub use history::Figure;
pub use kind::Kind;
pub use outcome::{
    Environment, Failure, MountRecord, Outcome, Round, SCHEMA, TargetRecord, WorkloadRecord,
};
pub use parameter::{Parameter, ParameterKind, Parameters, Preset, bytes};
pub use progress::Progress;
pub use reset::Resets;
pub(crate) use reset::{drop_caches, shell};
pub use run::{Chosen, Plan, is_interrupt, run, run_on};
pub use sample::{Better, Latency, Place, Sample, Unit};
pub use store::{RESULT_FILE, Store};
pub use tally::Tally;
pub use target::{Server, Target, TargetKind};
pub use workload::{Needs, Workload};
