//! MOUNT and NFS version 3 as a client speaks them.

mod calls;
mod listing;

pub use calls::{fh, filename};
pub use listing::{Page, list};
