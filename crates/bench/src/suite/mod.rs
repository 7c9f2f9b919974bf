//! The measuring suite, `comity bench`: workloads on targets, and what came of them.
//!
//! - A [`Workload`] says what is done and which [`Parameter`]s it has. Each of its runs is one
//!   round on one [`Target`], and leaves [`Sample`]s and [`Latency`] distributions in a
//!   [`Context`].
//! - A [`Target`] is what is measured. It opens [`Files`], the operations on files, for each
//!   worker; a [`Driver`] around them times every operation, checks every byte read and obeys an
//!   interrupt.
//! - The [runner](crate::runner) lets the targets take turns, round by round, and keeps an
//!   [`SuiteOutcome`] in the result directory ([`Store`]) after each.

mod call_counts;
mod content;
mod context;
mod driver;
mod environment;
mod files;
mod outcome;
mod parameter;
mod progress;
mod published_figure;
mod result_store;
mod sample;
mod stopwatch;
mod tally;
mod target;
mod target_kind;
mod time_budget;
mod version;
mod workload;

pub use call_counts::difference;
pub use comity_remote::file::{Entry, FileKind, Metadata};
pub use content::Content;
pub use context::{Context, Interrupt, Interrupted, Reset};
pub(crate) use context::{Gathered, joined};
pub use driver::{Driver, OpenFile};
pub use environment::memory_available_bytes;
pub use files::{Access, FileId, Files, LockKind, Range, Wait};
pub use outcome::{
    Environment, Failure, MountRecord, Round, SCHEMA, SuiteOutcome, TargetRecord, WorkloadRecord,
};
pub use parameter::{Parameter, ParameterKind, Parameters, Preset, bytes};
pub use progress::Progress;
pub use published_figure::Figure;
pub use result_store::{RESULT_FILE, Store};
pub use sample::{Better, Latency, Place, Sample, Unit};
pub use tally::Tally;
pub use target::{ByKey, Target, TargetKind, TargetServer};
pub use target_kind::Kind;
pub(crate) use time_budget::TimeBudget;
pub use version::Version;
pub use workload::{Needs, Workload};
