//! The vocabularies: what NFSv3, NFSv4, NLM, NSM, MOUNT, the portmapper and the grant program say
//! on the wire; types only.
//!
//! **Answers:** of which fields, in which order, with which numbers and bounds a message consists.
//! Every type that is received decodes, every type that is sent encodes; most do both, so that our
//! own clients and tests speak through the same words.
//!
//! **May not know:** what any message means or does, sockets, file systems.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod grants;
pub mod mount;
pub mod nfs3;
pub mod nfs4;
pub mod nlm;
pub mod nsm;
pub mod portmap;
