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

mod cleanup;
pub mod command;
mod content;
mod context;
mod driver;
mod environment;
mod files;
mod outcome;
mod parameter;
mod progress;
mod published_figure;
mod reset;
mod result_store;
mod run;
mod sample;
mod stopwatch;
mod tally;
mod target;
mod target_kind;
mod time_budget;
mod workload;

pub use comity_remote::file::{Entry, FileKind, Metadata};
pub use content::Content;
pub(crate) use context::joined;
pub use context::{Context, Interrupt, Interrupted, Reset};
pub use driver::{Driver, OpenFile};
pub use environment::memory_available_bytes;
pub use files::{Access, FileId, Files, LockKind, Range, Wait};
pub use outcome::{
    Environment, Failure, MountRecord, Outcome, Round, SCHEMA, TargetRecord, WorkloadRecord,
};
pub use parameter::{Parameter, ParameterKind, Parameters, Preset, bytes};
pub use progress::Progress;
pub use published_figure::Figure;
pub use reset::Resets;
pub(crate) use reset::{drop_caches, shell};
pub use result_store::{RESULT_FILE, Store};
pub use run::{Chosen, Plan, is_interrupt, run, run_on};
pub use sample::{Better, Latency, Place, Sample, Unit};
pub use tally::Tally;
pub use target::{Server, Target, TargetKind};
pub use target_kind::Kind;
pub use workload::{Needs, Workload};
