//! The lock manager of NFSv3: hosts without leases, whose locks and shares stand among those of
//! NFSv4 (RFC 1813, appendix II).
//!
//! A host is a client without a lease: it says when it has started anew, and so does the server.
//! One that is silent is asked whether it is still there (`probe.rs`).

mod hosts;
mod locks;
mod probe;
mod shares;
mod unacknowledged_grants;

pub use locks::{HostLock, LockRequestKind};
