//! How targets are reached: directories by system calls, servers by our own RPC client, peers that
//! are started for the run.

mod counters;
mod directory;
mod mount;
mod nfs;
mod nfs4;
mod null_target;
mod peer;
mod probe;
mod server;
mod spec;
mod version;

pub(crate) use counters::difference;
pub use directory::DirectoryTarget;
pub use null_target::NullTarget;
pub use peer::{Peer, needs_namespace};
pub use probe::probe;
pub use server::NfsTarget;
pub use spec::{Options, Spec};
pub use version::Version;
