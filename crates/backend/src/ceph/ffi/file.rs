//! The calls on open files and directories.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;

use rustix::io::Errno;

use super::api::{Raw, Result, STATX_ALL, Statx, checked};
use super::inode::CephInode;
use super::mount::{CephMount, Perms};

/// An open file. It is closed when it is dropped.
pub(in crate::ceph) struct CephFile {
    pub(super) mount: Arc<CephMount>,
    pub(super) raw: Raw,
}

// SAFETY: libcephfs uses an open file under the lock of its mount.
unsafe impl Send for CephFile {}
// SAFETY: as above.
unsafe impl Sync for CephFile {}

impl CephFile {
    /// Opens a file with the flags of open(2), with the rights of the superuser.
    pub(in crate::ceph) fn open(
        mount: &Arc<CephMount>,
        inode: &CephInode<'_>,
        flags: c_int,
    ) -> Result<Self> {
        let mut raw = null_mut();
        let open = mount.api.ceph_ll_open;
        // SAFETY: all arguments live over the call, and the result is ours.
        checked(unsafe { open(mount.raw, inode.raw, flags, &raw mut raw, mount.root.raw) })?;
        Ok(Self { mount: Arc::clone(mount), raw })
    }

    /// Takes over a file that [`CephInode::create`] has opened in this mount.
    pub(in crate::ceph) fn adopt(mount: &Arc<CephMount>, created: Created) -> Self {
        Self { mount: Arc::clone(mount), raw: created.0 }
    }

    /// Appends up to `count` bytes at `offset` to `bytes`; returns their number.
    pub(in crate::ceph) fn read_append(
        &self,
        bytes: &mut Vec<u8>,
        offset: i64,
        count: usize,
    ) -> Result<usize> {
        bytes.reserve(count);
        let room = bytes.spare_capacity_mut().as_mut_ptr().cast();
        let read = self.mount.api.ceph_ll_read;
        // SAFETY: the file lives, and there is room for `count` bytes.
        let length =
            checked(unsafe { read(self.mount.raw, self.raw, offset, count as u64, room) })?;
        // SAFETY: the library has filled `length` bytes after the old ones, within the capacity.
        unsafe { bytes.set_len(bytes.len() + length.min(count)) };
        Ok(length)
    }

    /// Writes at `offset`; returns the number of bytes written.
    pub(in crate::ceph) fn write(&self, data: &[u8], offset: i64) -> Result<usize> {
        let (bytes, length) = (data.as_ptr().cast(), data.len() as u64);
        let write = self.mount.api.ceph_ll_write;
        // SAFETY: the file lives, and the data have the length that is given.
        checked(unsafe { write(self.mount.raw, self.raw, offset, length, bytes) })
    }

    /// Puts the file's changes on stable storage. Data that the library has dropped before is not
    /// reported, only by [`CephFile::close`].
    pub(in crate::ceph) fn sync(&self) -> Result<()> {
        // SAFETY: the file lives.
        checked(unsafe { (self.mount.api.ceph_ll_fsync)(self.mount.raw, self.raw, 0) }).map(drop)
    }

    /// Makes a hole.
    pub(in crate::ceph) fn punch(&self, offset: i64, length: i64) -> Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let fallocate = self.mount.api.ceph_ll_fallocate;
        // SAFETY: the file lives.
        checked(unsafe { fallocate(self.mount.raw, self.raw, mode, offset, length) }).map(drop)
    }

    /// Takes or releases a lock without waiting.
    pub(in crate::ceph) fn lock(&self, lock: PosixLock) -> Result<()> {
        let mut lock = lock.raw();
        let set = self.mount.api.ceph_ll_setlk;
        // SAFETY: the file lives, and the structure is the one this call takes.
        checked(unsafe { set(self.mount.raw, self.raw, &raw mut lock, LOCK_OWNER, 0) }).map(drop)
    }

    /// Returns whether a lock could be taken.
    pub(in crate::ceph) fn could_lock(&self, lock: PosixLock) -> Result<bool> {
        let mut lock = lock.raw();
        let get = self.mount.api.ceph_ll_getlk;
        // SAFETY: the file lives, and the structure is the one this call takes and fills.
        checked(unsafe { get(self.mount.raw, self.raw, &raw mut lock, LOCK_OWNER) })?;
        Ok(c_int::from(lock.l_type) == libc::F_UNLCK)
    }

    /// Returns whether the file was opened in this mount.
    pub(in crate::ceph) fn is_of(&self, mount: &Arc<CephMount>) -> bool {
        Arc::ptr_eq(&self.mount, mount)
    }

    /// Closes the file. An error says that the library has dropped data of the object since this
    /// was opened, by whichever open file it was written.
    pub(in crate::ceph) fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let raw = std::mem::replace(&mut self.raw, null_mut());
        if raw.is_null() {
            return Ok(());
        }
        // SAFETY: the open file is ours, and is used by nobody any more.
        checked(unsafe { (self.mount.api.ceph_ll_close)(self.mount.raw, raw) }).map(drop)
    }
}

impl Drop for CephFile {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(%error, "a file of a Ceph file system was closed with an error");
        }
    }
}

/// The owner of all locks of this process: its clients' locks do not conflict in Ceph.
const LOCK_OWNER: u64 = 1;

/// A lock on bytes of a file.
#[derive(Debug, Clone, Copy)]
pub(in crate::ceph) struct PosixLock {
    /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
    pub(in crate::ceph) kind: c_int,
    /// The offset of the first byte.
    pub(in crate::ceph) start: i64,
    /// The number of bytes; 0 reaches to the end.
    pub(in crate::ceph) length: i64,
}

impl PosixLock {
    const fn raw(self) -> libc::flock {
        libc::flock {
            l_type: self.kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: self.start,
            l_len: self.length,
            l_pid: 0,
        }
    }
}

/// A file that was just created and is open; [`CephFile::adopt`] takes it.
pub(in crate::ceph) struct Created(pub(super) Raw);

/// An open directory.
pub(in crate::ceph) struct Listing<'m> {
    mount: &'m CephMount,
    raw: Raw,
}

/// An entry of a directory.
pub(in crate::ceph) struct ListedEntry<'m> {
    entry: libc::dirent64,
    /// The object, which stays in the cache of libcephfs as long as this lives.
    _inode: Option<CephInode<'m>>,
    /// Its attributes, those that were wanted.
    pub(in crate::ceph) stat: Statx,
}

impl ListedEntry<'_> {
    /// The name.
    pub(in crate::ceph) fn name(&self) -> &[u8] {
        let bytes: &[u8; 256] = {
            // SAFETY: both arrays have the same length, and characters are bytes.
            unsafe { &*(&raw const self.entry.d_name).cast() }
        };
        CStr::from_bytes_until_nul(bytes).map(CStr::to_bytes).unwrap_or_default()
    }

    /// The position after this entry.
    pub(in crate::ceph) const fn position(&self) -> i64 {
        self.entry.d_off
    }
}

impl<'m> Listing<'m> {
    /// Opens a directory.
    pub(in crate::ceph) fn open(inode: &CephInode<'m>, perms: &Perms) -> Result<Self> {
        let (mount, mut raw) = (inode.mount, null_mut());
        let open = mount.api.ceph_ll_opendir;
        // SAFETY: all arguments live over the call, and the result is ours.
        checked(unsafe { open(mount.raw, inode.raw, &raw mut raw, perms.raw) })?;
        Ok(Self { mount, raw })
    }

    /// Continues at a position that an entry had after it.
    pub(in crate::ceph) fn seek(&mut self, position: i64) {
        // SAFETY: the open directory is ours.
        unsafe { (self.mount.api.ceph_seekdir)(self.mount.raw, self.raw, position) };
    }

    /// Returns the next entry; all its attributes if `whole` is true, else only its number.
    pub(in crate::ceph) fn next(&mut self, whole: bool) -> Result<Option<ListedEntry<'m>>> {
        let (mut entry, mut stat) = (MaybeUninit::zeroed(), MaybeUninit::zeroed());
        let mut inode = null_mut();
        let (wanted, flags) =
            if whole { (STATX_ALL, libc::AT_SYMLINK_NOFOLLOW) } else { (STATX_INO, DONT_SYNC) };
        let read = self.mount.api.ceph_readdirplus_r;
        let (at, stat_at) = (entry.as_mut_ptr(), stat.as_mut_ptr());
        // SAFETY: the structures are those that this call fills, and the inode is ours.
        let count = checked(unsafe {
            let (inode, flags) = (&raw mut inode, flags as u32);
            read(self.mount.raw, self.raw, at, stat_at, wanted, flags, inode)
        })?;
        let inode = self.mount.inode(inode).ok();
        // SAFETY: both are plain numbers, and were zero where the library wrote nothing.
        let (entry, stat) = unsafe { (entry.assume_init(), stat.assume_init()) };
        Ok((count > 0).then_some(ListedEntry { entry, _inode: inode, stat }))
    }
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        // SAFETY: the open directory is ours, and is used by nobody any more.
        let closed =
            checked(unsafe { (self.mount.api.ceph_ll_releasedir)(self.mount.raw, self.raw) });
        if let Err(Errno::IO) = closed {
            tracing::error!("a directory of a Ceph file system was closed with an error");
        }
    }
}

/// `CEPH_STATX_INO`.
const STATX_INO: u32 = 0x100;

/// `AT_STATX_DONT_SYNC`.
const DONT_SYNC: c_int = 0x4000;
