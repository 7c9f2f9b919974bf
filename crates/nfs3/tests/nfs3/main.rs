//! NFSv3 and MOUNT as a client sees them: whole RPC records go in, whole records come out; below is
//! the memory backend with layers that note the order of things and fail on purpose.
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
mod nlm;
mod notices;
mod recalls;
mod reload;
mod rendering;
mod retries;
mod script;
mod sent;
mod transcripts;
mod transfers;
mod world;
mod written;
