use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use comity_vfs::{AsServer, Attr, Disk, FileType, Handle, Result, Status};
use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

use super::node::{Node, Use};
use crate::blocking::blocking;
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::{attr, file_type};
use crate::passthrough::limits::{DESCRIPTORS_RELIEF, OPEN_ATTEMPTS_MAX, OPEN_YIELDS};
use crate::passthrough::mounts::mount::{Mount, Reach, volume_id};

impl Passthrough {
    /// Returns the node of a handle; opens the object if it is not in the cache.
    pub(crate) fn node(&self, handle: &Handle) -> Result<Arc<Node>> {
        match self.nodes.get(handle) {
            Some(node) => Ok(node),
            None => self.open_node(handle).map(|(node, _)| node),
        }
    }

    /// Returns the node of a handle and its present attributes from the kernel. The cost is one
    /// system call if the node is in the cache.
    pub(crate) fn look(&self, handle: &Handle) -> Result<(Arc<Node>, Stat)> {
        let Some(node) = self.nodes.get(handle) else { return self.open_node(handle) };
        let stat = self.stat(&node)?;
        Ok((node, stat))
    }

    /// Returns the present attributes of an object. An object outside the cache is put there only
    /// if it was looked up a short while ago, or there is room.
    pub(crate) fn attributes(&self, handle: &Handle) -> Result<Attr<Disk>> {
        if let Some(node) = self.nodes.get(handle) {
            return Ok(attr(&node.mount, &self.stat(&node)?));
        }
        let mount = self.mount(volume_id(handle)?)?;
        if mount.reach() == Reach::BySearch || self.nodes.should_cache(handle) {
            return self.open_node(handle).map(|(node, stat)| attr(&node.mount, &stat));
        }
        let stat = fstat(self.open_object(&mount, handle)?).map_err(status)?;
        if stat.st_nlink == 0 { Err(Status::Stale) } else { Ok(attr(&mount, &stat)) }
    }

    /// Asks the kernel for a node's attributes; a node that has lost its last name is removed from
    /// the cache.
    pub(crate) fn stat(&self, node: &Node) -> Result<Stat> {
        node.stat().inspect_err(|failure| {
            if *failure == Status::Stale {
                self.nodes.remove(&node.handle);
            }
        })
    }

    /// Returns the node of a handle, which must be a directory.
    pub(crate) fn directory(&self, handle: &Handle) -> Result<Arc<Node>> {
        let node = self.node(handle)?;
        if node.kind == FileType::Directory { Ok(node) } else { Err(Status::NotDir) }
    }

    /// Returns the node of a handle, which must be a regular file, and its attributes from the
    /// kernel.
    pub(crate) fn file(&self, handle: &Handle) -> Result<(Arc<Node>, Stat)> {
        let (node, stat) = self.look(handle)?;
        must_be_file(&node)?;
        Ok((node, stat))
    }

    /// Returns the node of a handle, which must be a regular file; makes no system call if it is in
    /// the cache.
    pub(crate) fn regular(&self, handle: &Handle) -> Result<Arc<Node>> {
        let node = self.node(handle)?;
        must_be_file(&node)?;
        Ok(node)
    }

    /// Puts the object that is open as `object` into the cache; returns its existing node, if there
    /// is one.
    pub(crate) fn adopt(
        &self,
        mount: &Arc<Mount>,
        handle: Handle,
        object: OwnedFd,
    ) -> Result<(Arc<Node>, Stat)> {
        let stat = fstat(&object).map_err(status)?;
        let kind = file_type(stat.st_mode);
        let file = File::from(object);
        let node = Node::new(handle, Arc::clone(mount), file, kind, self.nodes.ledger());
        node.weigh(&stat);
        Ok((self.nodes.insert(node), stat))
    }

    /// Returns the descriptor of a node for its data or entries. It is opened with the server's own
    /// rights, because those of the caller have been checked.
    pub(crate) fn data(&self, node: &Node, purpose: Use) -> Result<Arc<File>> {
        if let Some(file) = node.data(purpose) {
            return Ok(file);
        }
        let flags = match purpose {
            Use::Write => OFlags::RDWR,
            Use::Read if node.kind == FileType::Directory => OFlags::RDONLY | OFlags::DIRECTORY,
            Use::Read => OFlags::RDONLY,
        };
        let opened = self.open_data(node, flags)?;
        let file = node.keep_data(purpose, File::from(opened));
        self.nodes.make_room();
        Ok(file)
    }

    /// Opens a regular file's data or a directory's entries again.
    pub(crate) fn open_data(&self, node: &Node, flags: OFlags) -> Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        self.identity.server()?;
        self.with_descriptors(|| match node.mount.reach() {
            Reach::ByHandle => node.mount.open_handle(&node.handle, flags),
            Reach::BySearch => reopen(node.fd(), flags),
        })
    }

    /// Calls `open`. If the process has no descriptors left, closes some cached ones and calls it
    /// again; after an error that passes by itself, calls it again for a tenth of a second at most.
    pub(crate) fn with_descriptors<T>(
        &self,
        open: impl Fn() -> std::result::Result<T, Errno>,
    ) -> Result<T> {
        for attempt in 0..OPEN_ATTEMPTS_MAX {
            match open() {
                Err(Errno::MFILE | Errno::NFILE) => {
                    self.cursors.clear();
                    if !self.nodes.relieve(DESCRIPTORS_RELIEF) {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                // The kernel returns NOMEM for the handle of a removed object while its inode is
                // given to a new one.
                Err(Errno::NOMEM) => let_others_on(attempt),
                outcome => return outcome.map_err(status),
            }
        }
        Err(Status::Delay)
    }

    /// Reads the table of mounts, if that is due.
    pub(crate) fn look_at_mounts(&self) -> Result<()> {
        if self.mounts.is_due() && self.mounts.look(&AsServer::here()?) {
            // An unmounted file system would stay busy because of its nodes.
            self.nodes.retain(|node| self.mounts.get(node.mount.id).is_some());
        }
        Ok(())
    }

    /// Returns the mount of the volume with this number.
    pub(crate) fn mount(&self, id: u32) -> Result<Arc<Mount>> {
        if let Some(mount) = self.mounts.get(id) {
            return Ok(mount);
        }
        self.look_at_mounts()?;
        self.mounts.get(id).ok_or(Status::Stale)
    }

    fn open_node(&self, handle: &Handle) -> Result<(Arc<Node>, Stat)> {
        let mount = self.mount(volume_id(handle)?)?;
        if mount.reach() == Reach::BySearch {
            return self.search(&mount, handle);
        }
        let object = self.open_object(&mount, handle)?;
        let (node, stat) = self.adopt(&mount, *handle, object)?;
        if stat.st_nlink == 0 {
            self.nodes.remove(handle);
            return Err(Status::Stale);
        }
        Ok((node, stat))
    }

    /// Opens the object of a handle as `O_PATH`.
    fn open_object(&self, mount: &Mount, handle: &Handle) -> Result<OwnedFd> {
        self.identity.server()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        self.with_descriptors(|| match mount.open_handle(handle, flags) {
            // The file system has never made a handle that it does not understand.
            Err(Errno::INVAL | Errno::NOENT | Errno::OVERFLOW) => Err(Errno::STALE),
            outcome => outcome,
        })
    }
}

/// Waits a moment: lets another thread run first, and later sleeps, in case the machine is busy.
fn let_others_on(attempt: u32) {
    match attempt.checked_sub(OPEN_YIELDS) {
        None => thread::yield_now(),
        Some(pauses) => blocking(|| thread::sleep(Duration::from_millis(1 << pauses))),
    }
}

/// Returns the error for a node that has no data.
pub(crate) fn must_be_file(node: &Node) -> Result<()> {
    match node.kind {
        FileType::Regular => Ok(()),
        FileType::Directory => Err(Status::IsDir),
        _ => Err(Status::Inval),
    }
}

/// Opens the object of a descriptor again, by the descriptor's link in /proc.
fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> std::result::Result<OwnedFd, Errno> {
    openat(CWD, link_of(fd), flags, Mode::empty())
}

/// Returns the link in /proc for a descriptor of this process.
pub(crate) fn link_of(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::passthrough::PassthroughOptions;

    /// Returns the outcome of calls of which the first `failures` fail with `errno`, and the number
    /// of calls.
    fn after(served: &Passthrough, failures: u32, errno: Errno) -> (Result<()>, u32) {
        let calls = Cell::new(0);
        let outcome = served.with_descriptors(|| {
            calls.set(calls.get() + 1);
            if calls.get() <= failures { Err(errno) } else { Ok(()) }
        });
        (outcome, calls.get())
    }

    #[test]
    fn a_passing_failure_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let served = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
        assert_eq!(after(&served, 1, Errno::NOMEM), (Ok(()), 2));
        assert_eq!(after(&served, 2, Errno::INTR), (Ok(()), 3));
        // A thread that makes an object may not run for many milliseconds.
        assert_eq!(after(&served, 7, Errno::NOMEM), (Ok(()), 8));
        assert_eq!(after(&served, 99, Errno::NOMEM), (Err(Status::Delay), OPEN_ATTEMPTS_MAX));
        assert_eq!(after(&served, 1, Errno::ACCESS), (Err(Status::Acces), 1));
    }

    #[test]
    fn a_process_without_descriptors_gives_cached_ones_back() {
        let folder = tempfile::tempdir().unwrap();
        let served = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
        assert_eq!(after(&served, 1, Errno::MFILE), (Err(Status::Delay), 1), "nothing to give");
        for number in 0..100 {
            let file = File::create(folder.path().join(number.to_string())).unwrap();
            let name = std::ffi::CString::new(number.to_string()).unwrap();
            let top = Arc::clone(served.mounts.top());
            let handle = top.name(top.top.as_fd(), &name).unwrap();
            served.adopt(&top, handle, file.into()).unwrap();
        }
        let held = || served.nodes.ledger().descriptors.open();
        let before = held();
        assert_eq!(after(&served, 1, Errno::MFILE), (Ok(()), 2));
        assert_eq!(held(), before - DESCRIPTORS_RELIEF);
        assert_eq!(after(&served, 9, Errno::NFILE), (Err(Status::Delay), 2));
        assert_eq!(held(), 0);
    }
}
