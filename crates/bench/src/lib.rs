//! Load generators and measurements at the level of the protocol.
//!
//! **Answers:** what an operation costs a server, in its own processor time and in time a client
//! waits, beside other servers measured in alternation in the same run: a minimal one that does
//! nothing but the one system call ([`raw`]), and nfs-ganesha where it is installed.
//!
//! **May not know:** how the server that is measured works inside.

pub mod agent;
pub mod command;
pub mod compare;
mod connection;
pub mod dice;
pub mod identity;
pub mod instructions;
pub mod layout;
pub mod limits;
pub mod load;
pub mod nfs;
pub mod nfs4;
mod operation;
mod outbox;
pub mod process;
pub mod raw;
pub mod reach;
pub mod report;
mod said;
pub mod script;
pub mod selfscale;
pub mod state;
pub mod statistics;
pub mod strangers;
pub mod suite;
pub mod syscalls;
pub mod table;
pub mod target;
pub mod workload;

pub use operation::{InSession, OPERATIONS, Operation, Stable};
