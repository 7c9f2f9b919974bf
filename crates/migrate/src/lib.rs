//! The migration program: a server hands exports, with the state of their clients, over to another
//! server.
//!
//! **Answers:** which calls a source makes and a target answers, and in which order; how servers
//! tell each other their load. It is a program of this project on the NFS port, for servers that
//! have proved a key of the configuration; docs/formats.md describes its messages.
//!
//! **May not know:** what the state of clients is, when an export is frozen, how a decision is
//! stored.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod client;
mod forwarded_calls;
mod forwarding_hosts;
mod program;
mod target;

pub use client::{MigrationClient, MigrationError};
pub use comity_programs::{CallFailure, results};
pub use forwarded_calls::ForwardedCalls;
pub use forwarding_hosts::ForwardingHosts;
pub use program::MigrationProgram;
pub use target::MigrationTarget;
