//! Load generators and measurements at the level of the protocol.
//!
//! **Answers:** what an operation costs a server, in its own processor time and in time a client
//! waits, beside other servers measured in alternation in the same run: a minimal one that does
//! nothing but the one system call ([`raw`]), and nfs-ganesha where it is installed.
//!
//! **May not know:** how the server that is measured works inside.

pub mod agent;
pub mod baseline_server;
pub mod call_templates;
pub mod command;
pub mod compare;
pub mod cost_table;
pub mod fixture_tree;
pub mod idmap_cost;
pub mod instructions;
pub mod limits;
pub mod load;
mod operation;
pub mod prober;
pub mod process;
pub mod report;
pub mod rng;
pub mod selfscale;
pub mod server_process;
pub mod state_cost;
pub mod statistics;
mod stdout;
pub mod strangers;
pub mod suite;
pub mod syscalls;
pub mod targets;
pub mod workload;

pub use operation::{InSession, OPERATIONS, Operation, Stable};
