//! Files in stripes over data servers (parallel NFS, RFC 8881, 12 and 13).
//!
//! **Answers:** on which data server a byte of a file is ([`Placed`], an [`comity_vfs::Fs`] over an
//! `Fs`); which handle proves that a client has a layout ([`PlacementKey`]).
//!
//! **May not know:** protocols, exports, callers' addresses, how a data server is reached.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod data_files;
mod data_server;
mod fs;
mod key;
pub mod limits;
mod placed;
mod record;
mod sizes;
mod stripes;

pub use data_server::DataServer;
pub use key::{KeyError, LayoutHandle, PlacementKey};
pub use placed::{Placed, PlacementSettings};
