//! The common parts of the programs of this project: the grant program and the migration program.
//!
//! **Answers:** how a caller that has a key reaches such a program at a server, calls it, and reads
//! the status of its reply; how the program writes that status.
//!
//! **May not know:** what any procedure does.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod client;
mod failure;
mod reply;
mod watchdog;

pub use client::{ClientError, ProgramClient, results, whole};
pub use failure::CallFailure;
pub use reply::{answer, done, text};
