//! The messages of NFSv3, NFSv4, NLM, NSM, MOUNT, the portmapper, and the programs of this project
//! for grants and migrations, on the wire; types only.
//!
//! **Answers:** which fields, numbers and limits a message has, and in which order. Every type that
//! is received can be decoded, every type that is sent can be encoded; most can do both, so that
//! this project's clients and tests use the same types.
//!
//! **May not know:** what any message means or does, sockets, file systems.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod grants;
pub mod migration;
pub mod mount;
pub mod nfs3;
pub mod nfs4;
pub mod nlm;
pub mod nsm;
pub mod portmap;
