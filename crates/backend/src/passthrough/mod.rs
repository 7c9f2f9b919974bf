//! A local directory served with real system calls; no other module makes system calls on files.
//!
//! Objects are named by the kernel's own file handles, kept open in a bounded cache, and used under
//! the ids of the caller, so that the kernel itself decides about rights, quotas and flags.

mod access;
mod attributes;
mod capabilities;
mod data;
mod directory;

mod fs;
mod handles;
mod leases;
pub(crate) mod limits;
mod mounts;
mod open;

pub use capabilities::Capabilities;
pub use directory::place::handle_of;
pub use handles::descriptors::Descriptors;
pub use handles::siblings::Siblings;
pub use open::{OpenError, PassthroughOptions};

use comity_vfs::{Cred, Disk, Gid, Handle, Result, Uid};

use self::access::thread_credentials::Identity;

/// A directory of this machine as a file system.
///
/// Each thread takes on the ids of its latest caller and keeps them until the next call. Before
/// such a thread opens files for other purposes it must call [`Passthrough::release_identity`].
#[derive(Debug)]
pub struct Passthrough {
    root: Handle,
    identity: Identity,
    /// The user this process runs as.
    server_uid: u32,
    mounts: mounts::Mounts,
    nodes: handles::cache::Cache,
    cursors: directory::readdir_cursor::Cursors,
    snapshots: directory::snapshot::Snapshots,
    paths: handles::path_cache::PathCache,
    siblings: Siblings,
    leases: leases::lease::Leases,
}

impl Passthrough {
    /// Restores the server's own ids of the calling thread, before it opens files for other
    /// purposes.
    ///
    /// # Errors
    /// [`comity_vfs::Status`] if the kernel does not allow it.
    pub fn release_identity(&self) -> Result<()> {
        self.identity.server()
    }

    /// Returns the owner of all new objects, if the server cannot act under the callers' own ids.
    fn maker(&self) -> Option<(Uid<Disk>, Gid<Disk>)> {
        let server = || {
            let gid = rustix::process::getegid().as_raw();
            (Uid::new(self.server_uid), Gid::new(gid))
        };
        (self.identity == Identity::Server).then(server)
    }

    /// Returns the uid whose files count as the caller's own.
    fn owner_uid(&self, cred: &Cred<Disk>) -> u32 {
        match self.identity {
            Identity::PerCaller => cred.uid.number(),
            Identity::Server => self.server_uid,
        }
    }
}
