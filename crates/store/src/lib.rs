//! Records that must outlive a restart of the server, on stable storage.
//!
//! **Answers:** which clients may reclaim what after a restart ([`Store::recovered`]), and when
//! what the engine wants to be remembered is on stable storage ([`Store::settle`]). The place
//! where it is kept is a [`Medium`]: a file ([`Store::open`]) or memory ([`MemoryMedium`]).
//! Credentials that keys hold, and what was revoked, are kept in a [`GrantFile`].
//!
//! **May not know:** why something is remembered, the wire, exports, clocks.
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
