//! Files in stripes over data servers (parallel NFS, RFC 8881, 12 and 13).
//!
//! **Answers:** on which data server a byte of a file is ([`Placed`], an [`comity_vfs::Fs`] over an
//! `Fs`); which file a data file belongs to; which handle proves that a client has a layout
//! ([`PlacementKey`]), and whether the layout is still good ([`Fences`]).
//!
//! **May not know:** protocols, exports, callers' addresses, how a data server is reached.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod broken_files;
mod check;
mod compare;
mod data_files;
mod data_server;
mod devices;
mod drained;
mod due_labels;
mod fences;
mod fs;
mod holds;
mod key;
mod known;
mod label;
mod labels;
mod learn_size;
pub mod limits;
mod mirror_owners;
mod mirrored;
mod mirrored_files;
mod mirrors;
mod moves;
mod names;
mod own_data;
mod pages;
mod placed;
mod placement;
mod placings;
mod random;
mod rebuild;
mod record;
mod resilver;
mod restore;
mod settings;
mod shards;
mod sizes;
mod small_files;
mod store;
mod stored;
mod stripes;
mod synthetic_ids;
mod tree_place;
mod used_space;

pub use data_server::{DataServer, ReachFiles};
pub use fences::{FENCE_ATTRIBUTE, Fences, Passed};
pub use key::{KeyError, LayoutHandle, PlacementKey};
pub use placed::Placed;
pub use settings::PlacementSettings;
pub use store::DataStore;
