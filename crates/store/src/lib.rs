//! Records that must outlive a restart of the server, on stable storage.
//!
//! **Answers:** which clients may reclaim what after a restart, and which files have sizes that may
//! be unknown ([`Store::recovered`]); when the engine's records are on stable storage
//! ([`Store::settle`]). They are kept on a [`Medium`]: a file ([`Store::open`]) or memory
//! ([`MemoryMedium`]). Credentials of keys, and revocations, are kept in a [`GrantFile`].
//!
//! **May not know:** the reason for a record, the wire, exports, clocks.
//!
//! The file's layout is in docs/formats.md.

mod database_file;
mod error;
mod grant_file;
mod key;
mod medium;
mod memory;
mod redb_file;
mod store;

pub use error::StoreError;
pub use grant_file::GrantFile;
pub use medium::{Medium, MediumError, OpenMedium};
pub use memory::MemoryMedium;
pub use store::Store;
