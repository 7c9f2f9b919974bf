use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use comity_vfs::{AsServer, Handle, Result, Status};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2, readlink};
use rustix::io::Errno;

use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::handles::node::Node;
use crate::passthrough::handles::open_handle::link_of;
use crate::passthrough::mounts::mount::Mount;

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Passthrough {
    /// See [`comity_vfs::Fs::directories_of`]: the directory of the path by which the kernel knows
    /// the object now. The kernel follows renames by any program, but it knows no path of an object
    /// that it opened by its handle and has not met by a name since it started.
    pub(crate) fn directories_of(&self, node: &Handle) -> Result<Vec<Handle>> {
        let (node, _) = self.look(node)?;
        let server = AsServer::here()?;
        Ok(self.directory_in_path(&server, &node).into_iter().collect())
    }

    /// Returns the directory of the kernel's path if the object has that name there. The path may
    /// contain a removed name, which another object may have now.
    fn directory_in_path(&self, server: &AsServer, node: &Node) -> Option<Handle> {
        let path = readlink(link_of(node.fd()).as_str(), Vec::new()).ok()?;
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let name = CString::new(path.file_name()?.as_bytes()).ok()?;
        let above = path.parent()?;
        let dir = self.with_descriptors(|| open_directory(server, node, above)).ok()?;
        let is_there = node.mount.name(dir.as_fd(), &name) == Ok(node.handle);
        is_there.then(|| node.mount.name(dir.as_fd(), c"").ok()).flatten()
    }
}

/// Opens a directory by its path in the kernel, which contains no symbolic links. In a mount of our
/// own, the path begins at the root of the mount.
fn open_directory(_: &AsServer, node: &Node, path: &Path) -> std::result::Result<OwnedFd, Errno> {
    let private = node.mount.private;
    let from = if private { node.mount.top.as_fd() } else { CWD };
    let inside = if private { ResolveFlags::IN_ROOT } else { ResolveFlags::empty() };
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | inside;
    openat2(from, path, DIRECTORY, Mode::empty(), resolve)
}

/// Returns the handle that a [`Passthrough`] of a directory above has for an object of this
/// machine. A program on the server can name objects by it. A symbolic link at the end of the path
/// is not followed.
///
/// # Errors
/// [`Status`] if the object does not exist, or its file system has no handles.
pub fn handle_of(path: &Path) -> Result<Handle> {
    let server = AsServer::here()?;
    let is_directory = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = if is_directory { path } else { parent.unwrap_or(Path::new(".")) };
    let mount = Mount::open(&server, directory).map_err(status)?;
    if is_directory {
        return Ok(mount.root);
    }
    let name = path.file_name().ok_or(Status::Inval)?;
    let name = CString::new(name.as_bytes()).map_err(|_| Status::Inval)?;
    mount.name(mount.top.as_fd(), &name).map_err(status)
}
