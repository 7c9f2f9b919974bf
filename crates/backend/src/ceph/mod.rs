//! A Ceph file system, through the low-level interface of libcephfs.
//!
//! Objects are named by their number and that of their snapshot, which outlive restarts of the
//! server and of Ceph. Names are changed under the ids of the caller, so that Ceph decides about
//! rights; data is read and written through files that stay open for a while, after the rights of
//! the caller were checked as for every other file system ([`comity_vfs::permission`]).
//!
//! Ceph may lose data that it has taken until it is told to write it. So a file that has such data
//! is written before it is closed, and the failure of any write is remembered
//! ([`files::CephFiles`], [`crate::sync_errors`]).

mod attributes;
mod changes;
mod data;
mod extended;
mod ffi;
mod files;
mod fs;
mod handle;
mod holds;
mod limits;
mod listing;
mod locks;
mod make;
mod mount_number;
mod names;
mod open;
mod siblings;
mod snapshot;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use comity_vfs::{Attr, Cred, Disk, Handle, Result, Status};
use rustix::io::Errno;

use self::ffi::{CephInode, CephMount, Perms, Vino};
use self::files::CephFiles;
use self::holds::CephHolds;

pub use open::CephOptions;
pub use siblings::CephSiblings;

/// A directory of a Ceph file system.
pub struct Ceph {
    siblings: CephSiblings,
    files: CephFiles,
    holds: CephHolds,
    mount: Arc<CephMount>,
    root: Handle,
    volume: u64,
    /// True after the cluster has cut this client off, which is logged once.
    cut_off: AtomicBool,
}

impl Ceph {
    /// Finds the object of a handle. Its attributes tell whether it still has a name.
    fn inode(&self, vino: Vino) -> Result<CephInode<'_>> {
        // Ceph may admit this client again after some time, but data is lost by then.
        if self.cut_off.load(Ordering::Relaxed) {
            return Err(Status::Io);
        }
        match self.mount.lookup_vino(vino) {
            // Ceph refuses numbers that no object can have.
            Err(Errno::INVAL | Errno::NOENT) => Err(Status::Stale),
            found => self.done(found),
        }
    }

    fn vino(&self, handle: &Handle) -> Result<Vino> {
        handle::decode(self.volume, handle)
    }

    /// Returns the object of a handle and its attributes.
    fn find(&self, handle: &Handle) -> Result<(Vino, CephInode<'_>, Attr<Disk>)> {
        let vino = self.vino(handle)?;
        let inode = self.inode(vino)?;
        let attr = self.attr(&inode)?;
        Ok((vino, inode, attr))
    }

    fn perms(&self, cred: &Cred<Disk>) -> Perms {
        let groups = cred.groups.iter().map(|gid| gid.number()).collect();
        self.mount.perms(cred.uid.number(), cred.gid.number(), groups)
    }

    /// Turns an error of libcephfs into a status.
    fn done<T>(&self, outcome: ffi::Result<T>) -> Result<T> {
        outcome.map_err(|errno| self.status(errno))
    }

    fn status(&self, errno: Errno) -> Status {
        match errno {
            Errno::SHUTDOWN | Errno::NOTCONN => {
                if !self.cut_off.swap(true, Ordering::Relaxed) {
                    tracing::error!(%errno, CUT_OFF);
                }
                Status::Io
            }
            Errno::TIMEDOUT => Status::Io,
            errno => crate::errno::status(errno),
        }
    }
}

impl Drop for Ceph {
    fn drop(&mut self) {
        self.holds.release_all();
        self.close_files(usize::MAX);
        self.siblings.leave(self.volume);
    }
}

/// The log line about a client that Ceph does not serve any more.
const CUT_OFF: &str = "the Ceph cluster has cut this client off (see `ceph osd blocklist ls`): \
    its calls fail until the server is restarted";

#[cfg(test)]
mod tests;
