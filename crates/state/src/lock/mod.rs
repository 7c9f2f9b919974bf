//! Byte-range locks: one structure for NFSv4 and NLM.

mod few;
mod held;
mod many;
mod queue;
mod range;
mod table;
mod tree;

pub use range::ByteRange;
pub use table::{Conflict, FileLocks, LockType, Offer};
