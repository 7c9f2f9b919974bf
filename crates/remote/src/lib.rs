//! A client of NFS servers: versions 4.2, 4.1 and 3 as a file system ([`mount()`]), and single
//! calls of versions 3 and 4.1 for programs that measure a server.
//!
//! **Answers:** what a file system on a server holds, as a [`comity_vfs::Fs`]; how a session
//! survives lost connections and restarts of the server.
//!
//! **May not know:** the local mount point, what is cached, and for whom a call is made.
//!
//! The client is a set of state machines without I/O or clock (`session`, `stateless`, `calls`).
//! The shell around them (`engine`, `transport`) owns threads and sockets; `fs4` turns verbs into
//! COMPOUNDs, `fs3` into calls of version 3.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod callers;
mod calls;
mod compound;
mod cookie_verifiers;
mod engine;
pub mod file;
mod fs3;
mod fs4;
pub mod limits;
mod machine;
mod mount;
pub mod nfs3;
pub mod nfs4;
pub mod rpc;
mod server_handle;
mod session;
mod stateless;
mod transport;
mod unstable;
mod volume_number;

pub use mount::{DelegationUse, MountError, MountOptions, Mounted, NfsVersion, mount};
pub use session::ClientIdentity;
pub use transport::{Duplex, Tcp, TlsRefusal, TlsTransport, Transport};
