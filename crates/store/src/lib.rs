//! Records that must outlive a restart of the server, on stable storage.
//!
//! **Answers:** which clients may reclaim what after a restart, and which files have sizes that may
//! be unknown ([`Store::recovered`]); when the engine's records are on stable storage
//! ([`Store::settle`]). They are kept on a [`Medium`]: a file ([`Store::open`]), memory
//! ([`MemoryMedium`]), or etcd ([`EtcdRecords`]). Credentials of keys, and revocations, are kept in
//! a [`GrantFile`].
//!
//! **May not know:** the reason for a record, the wire, exports, clocks.
//!
//! The layouts are in docs/formats.md.

mod database_file;
mod error;
pub mod etcd;
mod etcd_medium;
mod grant_file;
mod key;
mod medium;
mod memory;
mod redb_file;
mod store;

pub use error::StoreError;
pub use etcd_medium::{
    EtcdRecords, Fence, FencedError, RunRecords, read_run, read_runs, remove_runs, stored_runs,
};
pub use grant_file::GrantFile;
pub use medium::{Medium, MediumError, OpenMedium};
pub use memory::MemoryMedium;
pub use store::Store;
