//! Byte-range locks: one structure for NFSv4 and NLM.

mod queue;
mod range;
mod store;
mod table;
mod tree;
mod tree_index;
mod vec;

pub use range::ByteRange;
pub use table::{Conflict, FileLocks, LockType, Offer, QueuedLock};
