//! A local directory served with real system calls: the only place in the house that makes them on
//! files.
//!
//! Objects are named by the kernel's own file handles, kept open in a bounded cache, and used under
//! the ids of the caller, so that every verdict about rights, quotas and flags is the kernel's.

mod acl;
mod attr;
mod barrier;
mod cache;
mod capabilities;
mod change;
mod commit;
mod create;
mod cursor;
mod data;
mod descriptors;
mod errno;
mod failures;
mod fetch;
mod fs;
mod hold;
mod identity;
mod lease;
#[cfg(test)]
mod lease_site;
pub(crate) mod limits;
mod link;
mod lookup;
mod mark;
mod mounts;
mod name;
mod node;
mod open;
mod passing;
mod places;
mod range;
mod readdir;
mod remove;
mod search;
mod setattr;
mod siblings;
mod snapshot;
mod space;
mod verdict;
mod volume;
mod volumes;
mod within;
mod xattr;

pub use capabilities::Capabilities;
pub use descriptors::Descriptors;
pub use open::{OpenError, PassthroughOptions};
pub use siblings::Siblings;

use comity_vfs::{Cred, Disk, Gid, Handle, Result, Uid};

/// A directory of this machine as a file system.
///
/// Each thread that calls it takes on the ids of the caller it last spoke for and keeps them until
/// the next: before such a thread opens files for other purposes it calls
/// [`Passthrough::release_identity`].
#[derive(Debug)]
pub struct Passthrough {
    root: Handle,
    identity: identity::Identity,
    /// The user this process runs as.
    server_uid: u32,
    volumes: volumes::Volumes,
    nodes: cache::Cache,
    cursors: cursor::Cursors,
    snapshots: snapshot::Snapshots,
    places: places::Places,
    siblings: Siblings,
    leases: lease::Leases,
}

impl Passthrough {
    /// Gives the calling thread the server's own ids back, before it opens files for other
    /// purposes.
    ///
    /// # Errors
    /// [`comity_vfs::Status`] if the kernel does not let it.
    pub fn release_identity(&self) -> Result<()> {
        self.identity.server()
    }

    /// Whose all that is made is, where callers' own ids cannot be taken on.
    fn maker(&self) -> Option<(Uid<Disk>, Gid<Disk>)> {
        let server = || {
            let gid = rustix::process::getegid().as_raw();
            (Uid::new(self.server_uid), Gid::new(gid))
        };
        (self.identity == identity::Identity::Server).then(server)
    }

    /// Whose files count as the caller's own.
    fn owner_uid(&self, cred: &Cred<Disk>) -> u32 {
        match self.identity {
            identity::Identity::PerCaller => cred.uid.number(),
            identity::Identity::Server => self.server_uid,
        }
    }
}
