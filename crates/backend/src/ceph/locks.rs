//! Locks of clients against other clients of Ceph.

use std::sync::Arc;

use comity_vfs::{
    DirectoryHold, FileHold, Handle, LocalLocks, LocalUse, RangeLock, Result, Status,
};
use rustix::io::Errno;

use super::Ceph;
use super::ffi::{CephFile, PosixLock, Vino};
use super::files::FileUse;
use super::limits::{FILE_SIZE_MAX, LOCKED_FILES_MAX};
use super::snapshot::check_current;
use crate::blocking::blocking;

const ALL: (u64, u64) = (0, u64::MAX);

impl LocalLocks for Ceph {
    fn hold_range(&self, node: &Handle, bytes: (u64, u64), lock: RangeLock) -> Result<bool> {
        blocking(|| self.lock_range(node, bytes, lock))
    }

    fn is_range_free(&self, node: &Handle, bytes: (u64, u64), lock: RangeLock) -> Result<bool> {
        let vino = self.vino(node)?;
        blocking(|| {
            let file = self.locked_file(vino, libc::O_RDONLY)?;
            self.done(file.could_lock(raw(bytes, lock)?))
        })
    }

    fn hold_file(&self, node: &Handle, hold: FileHold) -> Result<bool> {
        blocking(|| self.hold(node, hold))
    }

    fn may_hold_directories(&self, _: DirectoryHold) -> std::result::Result<(), String> {
        Err("other clients of Ceph change directories without notice: leave the option out".into())
    }

    fn poll_wanted(&self) -> Option<(Handle, LocalUse)> {
        self.poll_recalled()
    }
}

impl Ceph {
    fn lock_range(&self, node: &Handle, bytes: (u64, u64), lock: RangeLock) -> Result<bool> {
        let vino = self.vino(node)?;
        if (lock, bytes) == (RangeLock::Free, ALL) {
            return self.unlock_all(vino).map(|()| true);
        }
        let known = self.siblings.table().locked.get(&(self.volume, vino)).cloned();
        let file = match known {
            Some(file) => file,
            None if lock == RangeLock::Free => return Ok(true),
            None => self.begin_locking(vino)?,
        };
        match file.lock(raw(bytes, lock)?) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
            Err(errno) if file.is_of(&self.mount) => Err(self.status(errno)),
            // Another mount that is cut off does not mean that this one is.
            Err(_) => Err(Status::Io),
        }
    }

    /// Opens a file whose bytes are to be locked. It stays open until all of it is unlocked.
    fn begin_locking(&self, vino: Vino) -> Result<Arc<CephFile>> {
        let flags = if check_current(vino).is_ok() { libc::O_RDWR } else { libc::O_RDONLY };
        // The file cannot be opened for writing while it is held.
        self.end_hold(vino);
        let file = self.locked_file(vino, flags)?;
        let locked = &mut self.siblings.table().locked;
        if locked.len() >= LOCKED_FILES_MAX {
            return Err(Status::Delay);
        }
        Ok(Arc::clone(locked.entry((self.volume, vino)).or_insert(file)))
    }

    /// Returns the open file of the locks of a file, or opens one with the flags of open(2).
    fn locked_file(&self, vino: Vino, flags: i32) -> Result<Arc<CephFile>> {
        if let Some(known) = self.siblings.table().locked.get(&(self.volume, vino)) {
            return Ok(Arc::clone(known));
        }
        let inode = self.inode(vino)?;
        self.attr(&inode)?;
        let open = || self.done(CephFile::open(&self.mount, &inode, flags)).map(Arc::new);
        match self.files.get(vino, FileUse::Write).filter(|file| file.is_written()) {
            Some(written) => self.open_settled(vino, &written, open),
            None => open(),
        }
    }

    /// Unlocks a file, and closes it. Calls for one file are never concurrent.
    fn unlock_all(&self, vino: Vino) -> Result<()> {
        let known = self.siblings.table().locked.get(&(self.volume, vino)).cloned();
        let Some(file) = known else { return Ok(()) };
        self.done(file.lock(raw(ALL, RangeLock::Free)?))?;
        let closed = self.siblings.table().locked.remove(&(self.volume, vino));
        drop((file, closed));
        Ok(())
    }
}

/// Returns a lock as Ceph takes it. The highest offsets cannot be counted, but files end before.
fn raw((first, last): (u64, u64), lock: RangeLock) -> Result<PosixLock> {
    let kind = match lock {
        RangeLock::Free => libc::F_UNLCK,
        RangeLock::Shared => libc::F_RDLCK,
        RangeLock::Exclusive => libc::F_WRLCK,
    };
    let length = match (first, last) {
        (FILE_SIZE_MAX.., _) => return Err(Status::FBig),
        (_, FILE_SIZE_MAX..) => 0,
        _ => (last - first + 1) as i64,
    };
    Ok(PosixLock { kind, start: first as i64, length })
}
