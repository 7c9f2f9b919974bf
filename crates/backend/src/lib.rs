//! `Fs` on real things, and the tests that everything which claims to be an `Fs` must pass.
//!
//! **Answers:** how the verbs of [`comity_vfs::Fs`] are done on a local directory ([`Passthrough`])
//! and in memory ([`Memory`]); what any `Fs` must do ([`conformance`]).
//!
//! **May not know:** protocols, exports, callers' addresses.

mod blocking;
pub mod conformance;
mod memory;
mod passthrough;
mod sys;

pub use blocking::{BlockingHook, blocking, install_blocking_hook};
pub use memory::{Memory, MemoryOptions};
pub use passthrough::{Capabilities, OpenError, Passthrough, PassthroughOptions};
