use std::time::SystemTime;

use comity_vfs::permission::{Object, mode_after_chmod, mode_after_chown, mode_after_write};
use comity_vfs::{
    Access, Acl, AclKind, Attr, Change, Cred, Device, Disk, FileType, Gid, Handle, Mode, Result,
    SetAttr, SetTime, Space, Status, Time, Uid,
};

use super::Ceph;
use super::ffi::{
    CephInode, SET_ATIME, SET_GID, SET_MODE, SET_MTIME, SET_SIZE, SET_UID, Statx, Vino,
};
use super::limits::{FILE_SIZE_MAX, FILES_FREE_MAX, SECONDS_MAX};
use super::snapshot::{self, check_current};

/// Bytes of a block of which libcephfs counts those that a file uses.
const BLOCK_BYTES: u64 = 512;

/// The times among the attributes to set.
const TIMES: i32 = SET_ATIME | SET_MTIME;

const NANOSECONDS: u32 = 1_000_000_000;

impl Ceph {
    /// Returns the attributes of an object that still has a name.
    pub(super) fn attr(&self, inode: &CephInode<'_>) -> Result<Attr<Disk>> {
        self.attr_of(&self.done(inode.getattr())?)
    }

    /// Returns the attributes in the form of this project.
    ///
    /// # Errors
    /// [`Status::Stale`] if the object has lost its last name.
    pub(super) fn attr_of(&self, stat: &Statx) -> Result<Attr<Disk>> {
        if stat.nlink == 0 {
            return Err(Status::Stale);
        }
        let file_type = file_type(u32::from(stat.mode)).ok_or(Status::Io)?;
        let time = |it: libc::timespec| Time { seconds: it.tv_sec, nanoseconds: it.tv_nsec as u32 };
        Ok(Attr {
            file_type,
            mode: Mode::new(stat.mode.into()),
            links: stat.nlink,
            uid: Uid::new(stat.uid),
            gid: Gid::new(stat.gid),
            size: stat.size,
            used: stat.blocks * BLOCK_BYTES,
            device: Device { major: libc::major(stat.rdev), minor: libc::minor(stat.rdev) },
            fsid: self.volume,
            fileid: snapshot::fileid(vino_of(stat)),
            atime: time(stat.atime),
            mtime: time(stat.mtime),
            ctime: time(stat.ctime),
            change: stat.version,
        })
    }

    /// Returns the ACL that decides about access to an object; `None` if the mode does.
    pub(super) fn acl_of(
        &self,
        inode: &CephInode<'_>,
        attr: &Attr<Disk>,
    ) -> Result<Option<Acl<Disk>>> {
        match attr.file_type {
            FileType::Symlink => Ok(None),
            _ => self.read_acl(inode, AclKind::Access),
        }
    }

    /// See [`comity_vfs::Fs::access`].
    pub(super) fn rights(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        let (_, inode, attr) = self.find(node)?;
        let acl = self.acl_of(&inode, &attr)?;
        Ok((Object { attr: &attr, acl: acl.as_ref() }.access(cred, wanted), attr))
    }

    /// Does `work` on an object; returns its attributes before and after.
    pub(super) fn change<T>(
        &self,
        node: &Handle,
        work: impl FnOnce(Vino, &CephInode<'_>, &Attr<Disk>) -> Result<T>,
    ) -> Result<(T, Change<Disk>)> {
        let vino = self.vino(node)?;
        let inode = self.inode(vino)?;
        self.end_hold(vino);
        let change = self.siblings.changes().begin(self.volume, vino);
        let before = self.attr(&inode)?;
        check_current(vino)?;
        let value = work(vino, &inode, &before)?;
        let after = self.attr(&inode).ok();
        Ok((value, change.end(before, after)))
    }

    /// See [`comity_vfs::Fs::setattr`].
    pub(super) fn set(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        let changed = self.change(node, |_, inode, before| {
            if guard.is_some_and(|time| time != before.ctime) {
                return Err(Status::NotSync);
            }
            self.apply(cred, (inode, before), set)
        });
        changed.map(|(_, change)| change)
    }

    /// Sets attributes. The superuser does it, after the rights of the
    /// caller were checked: an owner may set the length of a file that it may not write.
    pub(super) fn apply(
        &self,
        cred: &Cred<Disk>,
        (inode, before): (&CephInode<'_>, &Attr<Disk>),
        set: &SetAttr<Disk>,
    ) -> Result<()> {
        check_values(before, set)?;
        let acl = self.acl_of(inode, before)?;
        Object { attr: before, acl: acl.as_ref() }.check_setattr(cred, set)?;
        let (stat, mask) = wanted(cred, before, set);
        // Ceph sets the mtime itself with the length, so times come later.
        for mask in [mask & !TIMES, mask & TIMES].into_iter().filter(|mask| *mask != 0) {
            self.done(inode.setattr(stat, mask))?;
        }
        Ok(())
    }

    /// See [`comity_vfs::Fs::statfs`].
    pub(super) fn space(&self, node: &Handle) -> Result<Space> {
        let (_, inode, _) = self.find(node)?;
        let space = self.done(inode.statfs())?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        // Ceph counts the objects, but has no bound on their number.
        let free = |files: u64| files.min(FILES_FREE_MAX);
        Ok(Space {
            bytes_total: bytes(space.f_blocks),
            bytes_free: bytes(space.f_bfree),
            bytes_available: bytes(space.f_bavail),
            files_total: space.f_files.saturating_add(free(space.f_ffree)),
            files_free: free(space.f_ffree),
            files_available: free(space.f_favail),
        })
    }
}

/// Returns the numbers of an object.
pub(super) const fn vino_of(stat: &Statx) -> Vino {
    Vino { ino: stat.ino, snapid: stat.dev }
}

const fn file_type(mode: u32) -> Option<FileType> {
    Some(match mode & libc::S_IFMT {
        libc::S_IFREG => FileType::Regular,
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFBLK => FileType::Block,
        libc::S_IFCHR => FileType::Character,
        libc::S_IFIFO => FileType::Fifo,
        libc::S_IFSOCK => FileType::Socket,
        _ => return None,
    })
}

/// Checks whether the values are valid for the object, and can be stored.
fn check_values(before: &Attr<Disk>, set: &SetAttr<Disk>) -> Result<()> {
    match (set.size, before.file_type) {
        (Some(FILE_SIZE_MAX..), FileType::Regular) => return Err(Status::FBig),
        (Some(_), FileType::Directory) => return Err(Status::IsDir),
        (Some(_), kind) if kind != FileType::Regular => return Err(Status::Inval),
        _ => {}
    }
    if set.mode.is_some() && before.file_type == FileType::Symlink {
        return Err(Status::NotSupp);
    }
    let is_id = |id: Option<u32>| id != Some(u32::MAX);
    let is_time = |time: Option<SetTime>| match time {
        Some(SetTime::To(time)) => {
            (0..=SECONDS_MAX).contains(&time.seconds) && time.nanoseconds < NANOSECONDS
        }
        _ => true,
    };
    let ids = is_id(set.uid.map(Uid::number)) && is_id(set.gid.map(Gid::number));
    if ids && is_time(set.atime) && is_time(set.mtime) { Ok(()) } else { Err(Status::Inval) }
}

/// Returns the values to set, and which ones. Set-id bits are cleared as Linux clears them.
fn wanted(cred: &Cred<Disk>, before: &Attr<Disk>, set: &SetAttr<Disk>) -> (Statx, i32) {
    let mut stat = Statx::default();
    let mut mask = 0;
    let mut after = *before;
    if set.uid.is_some() || set.gid.is_some() {
        after.mode = mode_after_chown(cred, &after);
    }
    if let Some(uid) = set.uid {
        (stat.uid, mask) = (uid.number(), mask | SET_UID);
    }
    if let Some(gid) = set.gid {
        (stat.gid, mask) = (gid.number(), mask | SET_GID);
    }
    if let Some(size) = set.size {
        after.mode = mode_after_write(cred, &after);
        (stat.size, mask) = (size, mask | SET_SIZE);
    }
    if let Some(mode) = set.mode {
        after.mode = mode_after_chmod(cred, set.gid.unwrap_or(before.gid), mode);
    }
    if set.mode.is_some() || after.mode != before.mode {
        (stat.mode, mask) = (after.mode.bits() as u16, mask | SET_MODE);
    }
    if let Some(atime) = set.atime {
        (stat.atime, mask) = (timespec(atime), mask | SET_ATIME);
    }
    // Ceph does nothing if the length stays, but its times of change must grow.
    let stays = set.size == Some(before.size);
    if let Some(mtime) = set.mtime.or(stays.then_some(SetTime::Now)) {
        (stat.mtime, mask) = (timespec(mtime), mask | SET_MTIME);
    }
    (stat, mask)
}

fn timespec(time: SetTime) -> libc::timespec {
    let time = match time {
        SetTime::Now => Time::from(SystemTime::now()),
        SetTime::To(time) => time,
    };
    libc::timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() }
}
