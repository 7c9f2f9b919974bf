//! A disk cache: an [`comity_vfs::Fs`] over an `Fs`.
//!
//! **Answers:** which data, attributes, names and rights of the file system below are cached and
//! still valid ([`Cache`]), where they are stored ([`Medium`], [`Disk`]), and when written data is
//! sent to the file system below.
//!
//! **May not know:** protocols, servers, mounts, command lines.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod attribute_cache;
mod cache;
mod cleaner;
mod conflict;
mod counters;
mod directory_looks;
mod dirty;
mod disk;
mod file_turn;
mod header;
mod journal;
mod key;
mod limits;
mod listing_cache;
mod losses;
mod medium;
#[cfg(test)]
mod memory_medium;
mod name_cache;
mod options;
mod page_store;
mod server_folder;
mod verdict_cache;
mod write_back;

pub use cache::{Cache, VerifyStep};
pub use counters::CacheStatus;
pub use disk::Disk;
pub use medium::Medium;
pub use options::{AttributeTimes, CacheOptions, Clock, WriteMode};
pub use server_folder::FolderError;
