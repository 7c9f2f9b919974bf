//! `Fs` on real things, and the tests that everything which claims to be an `Fs` must pass.
//!
//! **Answers:** how the verbs of [`comity_vfs::Fs`] are done in memory ([`Memory`]); what any `Fs`
//! must do ([`conformance`]).
//!
//! **May not know:** protocols, exports, callers' addresses.

pub mod conformance;
mod memory;

pub use memory::{Memory, MemoryOptions};
