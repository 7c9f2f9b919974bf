//! What must outlive a restart of the server, on stable storage.
//!
//! **Answers:** which clients may reclaim what after a restart ([`Store::recovered`]), and when
//! what the engine wants to be remembered is on stable storage ([`Store::settle`]).
//!
//! **May not know:** why something is remembered, the wire, exports, clocks.
//!
//! The file's layout is in docs/formats.md.

mod key;
mod store;

pub use store::{Store, StoreError};
