//! NFS version 4.1 as a client speaks it: one session, one COMPOUND at a time to learn handles,
//! stateids and what replies look like, and the scripts for the load generator.

mod compound;
mod script;
mod session;

pub use compound::{Compound, Results};
pub use script::Prober4;
pub use session::{Backchannel, Reply, Session, Wire};
