//! The measuring suite `comity bench`, and the load generator that it shares with the project's own
//! harness.
//!
//! **Answers:** how fast a directory or a server does the workloads of the literature, on several
//! targets in turns, and whether two results differ.
//!
//! **May not know:** how the server that is measured works inside.

pub mod agent;
pub mod call_templates;
pub mod command;
pub mod compare;
pub mod consume;
mod direct_file;
pub mod dirsim;
pub mod disk_rates;
pub mod fixture_tree;
pub mod limits;
pub mod load;
pub mod number;
mod operation;
pub mod prober;
pub mod process;
pub mod report;
pub mod rng;
pub mod runner;
pub mod selfscale;
pub mod statistics;
pub mod stdout;
pub mod suite;
mod system;
pub mod targets;
pub mod workload;

pub use operation::{InSession, OPERATIONS, Operation, Stable};
