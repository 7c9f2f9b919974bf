//! Calls of MOUNT and NFS 3 for programs that measure a server.

mod calls;
mod listing;

pub use calls::{fh, filename};
pub use listing::{ListingPage, list};
