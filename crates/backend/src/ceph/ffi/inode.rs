//! The calls on objects of a mount.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use super::api::{Raw, Result, STATX_ALL, Statx, checked};
use super::file::Created;
use super::mount::{CephMount, Perms};

/// A reference to an object of a mount.
pub(in crate::ceph) struct CephInode<'m> {
    pub(super) mount: &'m CephMount,
    pub(super) raw: Raw,
}

/// A new or found object with its attributes.
pub(in crate::ceph) type FoundInode<'m> = (CephInode<'m>, Statx);

impl<'m> CephInode<'m> {
    /// Returns the object's attributes.
    pub(in crate::ceph) fn getattr(&self) -> Result<Statx> {
        let (CephMount { api, raw, root, .. }, mut stat) = (self.mount, MaybeUninit::zeroed());
        // SAFETY: mount and inode live, and the structure is the one this call fills.
        checked(unsafe {
            (api.ceph_ll_getattr)(*raw, self.raw, stat.as_mut_ptr(), STATX_ALL, 0, root.raw)
        })?;
        // SAFETY: it is all plain numbers, and was zero where the library wrote nothing.
        Ok(unsafe { stat.assume_init() })
    }

    /// Sets the attributes in `mask`, with the rights of the superuser.
    pub(in crate::ceph) fn setattr(&self, mut stat: Statx, mask: c_int) -> Result<()> {
        let (CephMount { api, raw, root, .. }, stat) = (self.mount, &raw mut stat);
        // SAFETY: mount and inode live, and the structure is the one this call takes and fills.
        checked(unsafe { (api.ceph_ll_setattr)(*raw, self.raw, stat, mask, root.raw) }).map(drop)
    }

    /// Finds a name in this directory.
    pub(in crate::ceph) fn lookup(&self, name: &CStr, perms: &Perms) -> Result<FoundInode<'m>> {
        let CephMount { api, raw, .. } = self.mount;
        self.found(|inode, stat| {
            // SAFETY: all arguments live over the call, and the result is ours.
            unsafe {
                let name = name.as_ptr();
                (api.ceph_ll_lookup)(*raw, self.raw, name, inode, stat, STATX_ALL, 0, perms.raw)
            }
        })
    }

    /// Makes a regular file that does not exist, and opens it for reading and writing.
    pub(in crate::ceph) fn create(
        &self,
        (name, mode): (&CStr, u32),
        perms: &Perms,
    ) -> Result<(FoundInode<'m>, Created)> {
        let CephMount { api, raw, .. } = self.mount;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOFOLLOW;
        let mut file = null_mut();
        let found = self.found(|inode, stat| {
            let (name, file) = (name.as_ptr(), &raw mut file);
            // SAFETY: all arguments live over the call, and the results are ours.
            unsafe {
                (api.ceph_ll_create)(
                    *raw, self.raw, name, mode, flags, inode, file, stat, STATX_ALL, 0, perms.raw,
                )
            }
        })?;
        Ok((found, Created(file)))
    }

    /// Makes a device, pipe or socket.
    pub(in crate::ceph) fn mknod(
        &self,
        (name, mode): (&CStr, u32),
        device: libc::dev_t,
        perms: &Perms,
    ) -> Result<FoundInode<'m>> {
        let CephMount { api, raw, .. } = self.mount;
        self.found(|inode, stat| {
            let name = name.as_ptr();
            // SAFETY: all arguments live over the call, and the result is ours.
            unsafe {
                (api.ceph_ll_mknod)(
                    *raw, self.raw, name, mode, device, inode, stat, STATX_ALL, 0, perms.raw,
                )
            }
        })
    }

    /// Makes a directory.
    pub(in crate::ceph) fn mkdir(
        &self,
        (name, mode): (&CStr, u32),
        perms: &Perms,
    ) -> Result<FoundInode<'m>> {
        let CephMount { api, raw, .. } = self.mount;
        self.found(|inode, stat| {
            let name = name.as_ptr();
            // SAFETY: all arguments live over the call, and the result is ours.
            unsafe {
                (api.ceph_ll_mkdir)(
                    *raw, self.raw, name, mode, inode, stat, STATX_ALL, 0, perms.raw,
                )
            }
        })
    }

    /// Makes a symbolic link.
    pub(in crate::ceph) fn symlink(
        &self,
        name: &CStr,
        target: &CStr,
        perms: &Perms,
    ) -> Result<FoundInode<'m>> {
        let CephMount { api, raw, .. } = self.mount;
        self.found(|inode, stat| {
            let (name, target) = (name.as_ptr(), target.as_ptr());
            // SAFETY: all arguments live over the call, and the result is ours.
            unsafe {
                (api.ceph_ll_symlink)(
                    *raw, self.raw, name, target, inode, stat, STATX_ALL, 0, perms.raw,
                )
            }
        })
    }

    fn found(&self, call: impl FnOnce(*mut Raw, *mut Statx) -> c_int) -> Result<FoundInode<'m>> {
        let (mut inode, mut stat) = (null_mut(), MaybeUninit::zeroed());
        checked(call(&raw mut inode, stat.as_mut_ptr()))?;
        // SAFETY: it is all plain numbers, and was zero where the library wrote nothing.
        Ok((self.mount.inode(inode)?, unsafe { stat.assume_init() }))
    }

    /// Gives this object a name in `dir`.
    pub(in crate::ceph) fn link(&self, dir: &Self, name: &CStr, perms: &Perms) -> Result<()> {
        let CephMount { api, raw, .. } = self.mount;
        // SAFETY: all arguments live over the call.
        checked(unsafe { (api.ceph_ll_link)(*raw, self.raw, dir.raw, name.as_ptr(), perms.raw) })
            .map(drop)
    }

    /// Removes a name of an object that is no directory.
    pub(in crate::ceph) fn unlink(&self, name: &CStr, perms: &Perms) -> Result<()> {
        let CephMount { api, raw, .. } = self.mount;
        // SAFETY: all arguments live over the call.
        checked(unsafe { (api.ceph_ll_unlink)(*raw, self.raw, name.as_ptr(), perms.raw) }).map(drop)
    }

    /// Removes an empty directory.
    pub(in crate::ceph) fn rmdir(&self, name: &CStr, perms: &Perms) -> Result<()> {
        let CephMount { api, raw, .. } = self.mount;
        // SAFETY: all arguments live over the call.
        checked(unsafe { (api.ceph_ll_rmdir)(*raw, self.raw, name.as_ptr(), perms.raw) }).map(drop)
    }

    /// Renames `old` in this directory to `new` in `dir`.
    pub(in crate::ceph) fn rename(
        &self,
        old: &CStr,
        (dir, new): (&Self, &CStr),
        perms: &Perms,
    ) -> Result<()> {
        let CephMount { api, raw, .. } = self.mount;
        let (old, new) = (old.as_ptr(), new.as_ptr());
        // SAFETY: all arguments live over the call.
        checked(unsafe { (api.ceph_ll_rename)(*raw, self.raw, old, dir.raw, new, perms.raw) })
            .map(drop)
    }

    /// Returns the target of a symbolic link.
    pub(in crate::ceph) fn readlink(&self) -> Result<Vec<u8>> {
        let CephMount { api, raw, root, .. } = self.mount;
        let mut target = vec![0_u8; libc::PATH_MAX as usize];
        let room = target.as_mut_ptr().cast();
        // SAFETY: the room has the length that is given.
        let length = checked(unsafe {
            (api.ceph_ll_readlink)(*raw, self.raw, room, target.len(), root.raw)
        })?;
        target.truncate(length);
        Ok(target)
    }

    /// Puts the object's changes on stable storage.
    pub(in crate::ceph) fn sync(&self) -> Result<()> {
        let CephMount { api, raw, .. } = self.mount;
        // SAFETY: mount and inode live.
        checked(unsafe { (api.ceph_ll_sync_inode)(*raw, self.raw, 0) }).map(drop)
    }

    /// Returns space and number of objects of the file system, or those of the object's quota.
    pub(in crate::ceph) fn statfs(&self) -> Result<libc::statvfs64> {
        let (CephMount { api, raw, .. }, mut space) = (self.mount, MaybeUninit::zeroed());
        // SAFETY: mount and inode live, and the structure is the one this call fills.
        checked(unsafe { (api.ceph_ll_statfs)(*raw, self.raw, space.as_mut_ptr()) })?;
        // SAFETY: it is all plain numbers, and was zero where the library wrote nothing.
        Ok(unsafe { space.assume_init() })
    }

    /// Returns the value of an extended attribute of at most `bytes_max` bytes.
    pub(in crate::ceph) fn getxattr(&self, name: &CStr, bytes_max: usize) -> Result<Vec<u8>> {
        let CephMount { api, raw, root, .. } = self.mount;
        let mut value = vec![0_u8; bytes_max];
        let room = value.as_mut_ptr().cast();
        // SAFETY: the room has the length that is given, and all other arguments live.
        let length = checked(unsafe {
            (api.ceph_ll_getxattr)(*raw, self.raw, name.as_ptr(), room, value.len(), root.raw)
        })?;
        value.truncate(length);
        Ok(value)
    }

    /// Sets an extended attribute.
    pub(in crate::ceph) fn setxattr(
        &self,
        name: &CStr,
        value: &[u8],
        flags: c_int,
        perms: &Perms,
    ) -> Result<()> {
        let (CephMount { api, raw, .. }, bytes) = (self.mount, value.as_ptr().cast());
        // SAFETY: the value has the length that is given, and all other arguments live.
        checked(unsafe {
            let name = name.as_ptr();
            (api.ceph_ll_setxattr)(*raw, self.raw, name, bytes, value.len(), flags, perms.raw)
        })
        .map(drop)
    }

    /// Fetches the attributes of a directory from Ceph, also if they are in the cache: reading this
    /// attribute always does so.
    pub(in crate::ceph) fn refresh(&self) -> Result<()> {
        const COUNT_BYTES_MAX: usize = 32;
        self.getxattr(c"ceph.dir.entries", COUNT_BYTES_MAX).map(drop)
    }

    /// Removes an extended attribute.
    pub(in crate::ceph) fn removexattr(&self, name: &CStr, perms: &Perms) -> Result<()> {
        let CephMount { api, raw, .. } = self.mount;
        // SAFETY: all arguments live over the call.
        checked(unsafe { (api.ceph_ll_removexattr)(*raw, self.raw, name.as_ptr(), perms.raw) })
            .map(drop)
    }

    /// Returns the names of all extended attributes, each with a zero after it.
    pub(in crate::ceph) fn listxattr(&self, bytes_max: usize) -> Result<Vec<u8>> {
        let CephMount { api, raw, root, .. } = self.mount;
        let (mut names, mut length) = (vec![0_u8; bytes_max], 0);
        let room = names.as_mut_ptr().cast();
        // SAFETY: the room has the length that is given.
        checked(unsafe {
            let length = &raw mut length;
            (api.ceph_ll_listxattr)(*raw, self.raw, room, bytes_max, length, root.raw)
        })?;
        names.truncate(length);
        Ok(names)
    }
}

impl Drop for CephInode<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and is used by nobody any more.
        unsafe { (self.mount.api.ceph_ll_put)(self.mount.raw, self.raw) };
    }
}
