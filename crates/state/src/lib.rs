//! What a server of NFSv4 (and of NLM) must remember, as plain data.
//!
//! **Answers:** who holds and who waits for which byte range of a file ([`FileLocks`]).
//!
//! It does no I/O, reads no clock and rolls no dice: the time is an argument, and what must go out
//! (a lock that can be had now) is returned as a value.
//!
//! **May not know:** the wire, file systems, threads, clocks.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod lock;

pub use lock::{ByteRange, Conflict, FileLocks, LockType, Offer};
