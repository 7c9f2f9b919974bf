//! The grant program: keys submit credentials, list and revoke them, and ask why something is
//! allowed.
//!
//! **Answers:** what a call of the grant program is answered. It is Comity's own program at the
//! port of NFS, for callers who proved a key; docs/formats.md has its messages.
//!
//! **May not know:** sockets, how rights follow from credentials, where they are kept.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod answer;
mod ask;
mod client;
mod list;
mod program;
mod request;
mod revoke;
mod submit;

pub use client::{ClientError, GrantClient, whole};
pub use program::GrantProgram;
