//! Operations on byte-range locks of NFSv4 (RFC 8881, 18.10 to 18.12).

mod lock_ops;
mod place;
mod programs;
mod unlock;
mod waits;

pub use lock_ops::{Lock, Locker};
pub(crate) use unlock::other_lock;
