//! The state of NLM, the lock manager of NFSv3. Its locks and shares stand beside those of NFSv4
//! (RFC 1813, appendix II).
//!
//! A host is a client without a lease. It notifies the server when it has restarted, and the server
//! notifies its hosts. A silent host is probed (`probe.rs`).

mod hosts;
mod locks;
mod probe;
mod shares;
mod unacknowledged_grants;

pub use locks::{HostLock, LockRequestKind};
