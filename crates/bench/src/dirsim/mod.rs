//! `comity bench dirsim`: simulates what directory delegations would save on a trace (RFC 8881,
//! 10.9).
//!
//! Wickman's simulation at CITI (2006) granted every delegation and let clients cache without
//! bound: it saved over 90 % of LOOKUPs and over 95 % of the revalidations of directories. The
//! table prints its figures for comparison.

mod client_cache;
mod directory_tree;
mod event;
mod generate;
pub mod import;
mod options;
mod policy;
mod replay;
mod simulated_calls;
mod simulation;
mod table;
mod text;
mod trace_error;

pub use event::{Action, Actor, Event};
pub use generate::Pattern;
pub use options::{Options, command};
pub use policy::PolicyName;
pub use replay::{Replayed, lay_out, replay};
pub use simulated_calls::{Asked, CallCounts, SimulatedCalls};
pub use simulation::{Settings, simulate};
pub use text::{read, write};
pub use trace_error::TraceError;

#[cfg(test)]
mod tests;
