//! Calls of NFS 4.1 for programs that measure a server: sessions, and one COMPOUND at a time.

mod attributes;
mod compound;
mod failure;
mod layout;
mod listing;
mod locker;
mod opened;
mod session;
mod write_head;

pub use attributes::{OBJECT, Values, made, metadata, owned};
pub use compound::{Compound, Reply, Results};
pub use layout::GotLayout;
pub use listing::{ListingPage, list, page_of};
pub use locker::{Locker, Stretch};
pub use opened::{Opened, Opening};
pub use session::{Backchannel, Session, Wire};
pub use write_head::WriteHead;
