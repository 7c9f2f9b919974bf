//! A disk cache: an [`comity_vfs::Fs`] over an `Fs`.
//!
//! **Answers:** which data, attributes, names and rights of the file system below are known and
//! still true ([`Cache`]), where they are kept ([`Medium`], [`Disk`]), and what becomes of data
//! that programs have written and the file system below does not have yet.
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
mod header;
mod journal;
mod key;
mod limits;
mod listing_cache;
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
