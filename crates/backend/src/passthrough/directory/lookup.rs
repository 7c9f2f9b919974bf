use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use comity_vfs::Node as Found;
use comity_vfs::{Cred, Disk, Entry, Handle, Name, Result, Status};
use rustix::fs::{Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::attr;
use crate::passthrough::handles::node::Node;
use crate::passthrough::limits::DEPTH_MAX;
use crate::sys;
use crate::zero_name::ZeroName;

const PATH: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Passthrough {
    /// See [`comity_vfs::Fs::lookup`].
    pub(crate) fn lookup(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Entry<Disk>> {
        let dir = self.directory(dir)?;
        self.look_at_mounts()?;
        self.identity.caller(cred)?;
        let found = self.find(&dir, ZeroName::new(name).as_c_str());
        // In a removed directory every name is missing, but the caller must get the error of the
        // directory.
        let (node, stat) = match found {
            Err(Status::NoEnt) => return Err(self.stat(&dir).err().unwrap_or(Status::NoEnt)),
            found => found?,
        };
        let dir = self.stat(&dir).ok().map(|stat| attr(&dir.mount, &stat));
        Ok(Entry { node: found_node(&node, &stat), dir })
    }

    /// See [`comity_vfs::Fs::parent`].
    pub(crate) fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Found<Disk>> {
        let node = self.directory(dir)?;
        if *dir == self.root {
            return Ok(found_node(&node, &self.stat(&node)?));
        }
        self.stat(&node)?;
        self.identity.caller(cred)?;
        if let Some(above) = self.mounts.above(dir) {
            admit_searcher(&node)?;
            return self.look(&above).map(|(node, stat)| found_node(&node, &stat));
        }
        let flags = PATH | OFlags::DIRECTORY;
        let above =
            self.with_descriptors(|| match openat(node.fd(), c"..", flags, Mode::empty()) {
                // The directory has been moved out of the served tree.
                Err(Errno::NOENT) => Err(Errno::STALE),
                outcome => outcome,
            })?;
        if !node.mount.private {
            self.admit_inside(&above)?;
        }
        let handle = node.mount.name(std::os::fd::AsFd::as_fd(&above), c"").map_err(status)?;
        let (node, stat) = self.adopt(&node.mount, handle, above)?;
        Ok(found_node(&node, &stat))
    }

    /// Looks up a name under the thread's present identity. Handle and attributes always belong to
    /// the same object.
    pub(crate) fn find(&self, dir: &Node, name: &CStr) -> Result<(Arc<Node>, Stat)> {
        if let Some(root) = self.mounts.mounted_at(&dir.handle, name) {
            admit_searcher(dir)?;
            return self.look(&root);
        }
        let handle = dir.mount.name(dir.fd(), name).map_err(foreign)?;
        self.paths.learn(&handle, &dir.handle, name);
        if let Some(node) = self.nodes.get(&handle) {
            let stat = self.stat(&node)?;
            return Ok((node, stat));
        }
        self.open_entry(dir, name)
    }

    /// Opens the object of a name, under the thread's present identity.
    pub(crate) fn open_entry(&self, dir: &Node, name: &CStr) -> Result<(Arc<Node>, Stat)> {
        let object = self.with_descriptors(|| openat(dir.fd(), name, PATH, Mode::empty()))?;
        let handle = dir.mount.name(std::os::fd::AsFd::as_fd(&object), c"").map_err(foreign)?;
        self.adopt(&dir.mount, handle, object)
    }

    /// Returns [`Status::Stale`] for a directory that is not below the root, because it was moved
    /// out of the served tree.
    fn admit_inside(&self, dir: &OwnedFd) -> Result<()> {
        let top = fstat(&self.mounts.top().top).map_err(status)?;
        let mut here = dir.try_clone().map_err(|_| Status::Delay)?;
        let mut below = None;
        for _ in 0..DEPTH_MAX {
            let stat = fstat(&here).map_err(status)?;
            let number = (stat.st_dev, stat.st_ino);
            if number == (top.st_dev, top.st_ino) {
                return Ok(());
            }
            if below == Some(number) {
                break;
            }
            below = Some(number);
            here = self.with_descriptors(|| {
                openat(&here, c"..", PATH | OFlags::DIRECTORY, Mode::empty())
            })?;
        }
        Err(Status::Stale)
    }
}

/// Returns [`Status::Acces`] unless the thread's present identity may search a directory. The
/// kernel does not check this itself where a path crosses to another file system.
fn admit_searcher(dir: &Node) -> Result<()> {
    sys::may_access(dir.fd(), libc::X_OK).map_err(status)
}

/// A directory on which another file system is mounted can only be reached through a private mount.
fn foreign(errno: Errno) -> Status {
    if errno == Errno::XDEV { Status::Acces } else { status(errno) }
}

/// Returns a node in the form of the trait `Fs`.
pub(crate) fn found_node(node: &Node, stat: &Stat) -> Found<Disk> {
    Found { handle: node.handle, attr: attr(&node.mount, stat) }
}
