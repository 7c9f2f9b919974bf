//! NFSv3 and MOUNT as a client sees them: whole RPC records go in and come out. The file system is
//! the memory backend, with layers that record the order of events and inject faults.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod barriers;
mod border;
mod conflicts;
mod directories;
mod golden;
mod granted;
mod granted_operations;
mod hostile;
mod hunt;
mod listing;
mod mounts;
mod moving;
mod nlm;
mod notices;
mod recalls;
mod reload;
mod rendering;
mod retries;
mod script;
mod transcripts;
mod transfers;
mod world;
mod written;
