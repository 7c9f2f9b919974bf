//! NFS version 4.1 as a client speaks it: sessions and their slots, one COMPOUND at a time to learn
//! handles, stateids and what replies look like, and the scripts for the load generator.

mod attributes;
mod compound;
mod failure;
mod held;
mod listing;
mod locker;
mod opened;
mod prober;
mod session;

pub(crate) use attributes::{OBJECT, made, metadata, owned};
pub(crate) use compound::Compound;
pub(crate) use listing::list;
pub(crate) use locker::{Locker, Stretch};
pub(crate) use opened::{Opened, Opening};
pub use prober::Prober;
pub use session::{Backchannel, Session, Wire};

/// The minor version that is spoken.
pub(crate) const MINOR: u32 = 1;
