//! The grant program: keys submit credentials, list and revoke them, and ask why something is
//! allowed.
//!
//! **Answers:** the calls of the grant program. It is a program of this project on the NFS port,
//! for callers who have proved a key; docs/formats.md describes its messages.
//!
//! **May not know:** sockets, how rights follow from credentials, where credentials are
//! stored.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod answer;
mod ask;
mod list;
mod program;
mod request;
mod revoke;
mod submit;

pub use program::GrantProgram;
