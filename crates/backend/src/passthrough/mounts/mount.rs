use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use comity_vfs::{AsServer, Handle, Status};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, fstat, open, openat, statx};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::sys::{self, HandleUse, KernelHandle};

/// One mounted file system of the tree that is served.
///
/// A handle is the volume's number (4 bytes), the kernel's type of handle (2) and the kernel's own
/// bytes: it survives renames and restarts. Where the kernel has no handles, the inode number and
/// the birth time are used instead.
#[derive(Debug)]
pub(crate) struct Mount {
    /// The number of the volume, stable over restarts.
    pub(crate) id: u32,
    /// The file system id that clients see.
    pub(crate) fsid: u64,
    /// The number in all file systems of this process ([`crate::Siblings`]), once it is known.
    pub(crate) number: OnceLock<u64>,
    /// The kernel's number of its device.
    pub(crate) device: u64,
    /// The handle of the root directory.
    pub(crate) root: Handle,
    /// The root directory, as `O_PATH`.
    pub(crate) top: OwnedFd,
    /// The mount that was opened.
    pub(crate) mount_id: i32,
    /// True if the mount is a copy of our own, with no other mounts in it and no `..` above its
    /// root.
    pub(crate) private: bool,
    /// The directory through which handles are opened.
    dir: OwnedFd,
    /// The same directory through a mount that does not change times of last access, if there is
    /// one.
    still: Option<OwnedFd>,
    naming: Naming,
    reach: Reach,
}

/// The origin of handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Kernel(HandleUse),
    /// Inode number and birth time.
    Inode,
}

/// The method by which handles are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The kernel opens the handle.
    ByHandle,
    /// The object is found by the path where it was last seen, or by a search of the tree.
    BySearch,
}

/// The type of handle with inode number and birth time; no file system uses it.
const KIND_INODE: u16 = 0xfffe;

impl Mount {
    /// Opens the file system mounted at `path`.
    pub(crate) fn open(server: &AsServer, path: &Path) -> Result<Self, Errno> {
        let shared = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let copy = copy_of_mount(server, path, &shared);
        let private = copy.is_some();
        let top = copy.unwrap_or(shared);
        let dir = openat(&top, c".", DIRECTORY, Mode::empty())?;
        let still = if private { still_mount(server, path, &top) } else { None };
        let (naming, mount_id) = naming_of(top.as_fd());
        let (id, fsid, device) = numbers(&top)?;
        let root = Handle::new(&[0]).map_err(|_| Errno::INVAL)?;
        let mut mount = Self {
            id,
            fsid,
            number: OnceLock::new(),
            device,
            root,
            top,
            mount_id,
            private,
            dir,
            still,
            naming,
            reach: Reach::BySearch,
        };
        mount.root = mount.name(mount.top.as_fd(), c"")?;
        mount.reach = mount.find_reach();
        Ok(mount)
    }

    /// Returns the method by which handles are opened.
    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// Returns whether links can be read without a change of their access time.
    pub(crate) fn is_still(&self) -> bool {
        self.still.is_some()
    }

    /// Returns the handle of `name` in `dir`, or of `dir` itself if the name is empty.
    /// `Errno::XDEV` if another file system is mounted there.
    pub(crate) fn name(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<Handle, Errno> {
        match self.naming {
            Naming::Kernel(purpose) => {
                let (handle, mount_id) = sys::name_to_handle(dir, name, purpose)?;
                if mount_id != self.mount_id {
                    return Err(Errno::XDEV);
                }
                self.encode(&handle)
            }
            Naming::Inode => self.name_by_inode(dir, name),
        }
    }

    /// Returns the handle for the kernel's handle of an object of this volume.
    pub(crate) fn handle(&self, named: &KernelHandle) -> Option<Handle> {
        self.encode(named).ok()
    }

    /// Opens the object of a handle of this volume. Needs the server's own rights.
    pub(crate) fn open_handle(&self, handle: &Handle, flags: OFlags) -> Result<OwnedFd, Errno> {
        sys::open_by_handle(self.dir.as_fd(), &decode(handle)?, flags)
    }

    /// Opens the object of a handle so that reading it does not change its access time.
    pub(crate) fn open_still(&self, handle: &Handle, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mount = self.still.as_ref().ok_or(Errno::NOSYS)?;
        sys::open_by_handle(mount.as_fd(), &decode(handle)?, flags)
    }

    /// Returns the root directory, opened for reading: for `syncfs` and `fstatfs`.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    fn find_reach(&self) -> Reach {
        if self.naming != Naming::Kernel(HandleUse::Open) {
            return Reach::BySearch;
        }
        match self.open_handle(&self.root, OFlags::PATH) {
            Ok(_) => Reach::ByHandle,
            Err(_) => Reach::BySearch,
        }
    }

    fn name_by_inode(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<Handle, Errno> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        let found = statx(dir, name, flags, StatxFlags::INO | StatxFlags::BTIME)?;
        if rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor) != self.device {
            return Err(Errno::XDEV);
        }
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&found.stx_ino.to_be_bytes());
        bytes[8..16].copy_from_slice(&found.stx_btime.tv_sec.to_be_bytes());
        bytes[16..].copy_from_slice(&found.stx_btime.tv_nsec.to_be_bytes());
        let named = KernelHandle::new(KIND_INODE.into(), &bytes).ok_or(Errno::OVERFLOW)?;
        self.encode(&named)
    }

    /// The parts have fixed lengths for speed: a listing makes a handle for each entry.
    fn encode(&self, named: &KernelHandle) -> Result<Handle, Errno> {
        let kind = u16::try_from(named.kind).map_err(|_| Errno::OVERFLOW)?;
        let mut whole = [0; comity_vfs::limits::HANDLE_BYTES_MAX];
        if let Some((id, rest)) = whole.split_first_chunk_mut()
            && let Some((place, rest)) = rest.split_first_chunk_mut()
        {
            *id = self.id.to_be_bytes();
            *place = kind.to_be_bytes();
            rest.copy_from_slice(named.padded());
        }
        Handle::from_padded(whole, 6 + named.length()).map_err(|_| Errno::OVERFLOW)
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Returns the number of the volume that a handle names.
///
/// # Errors
/// [`Status::BadHandle`] if the handle is too short.
pub(crate) fn volume_id(handle: &Handle) -> Result<u32, Status> {
    let (id, rest) = handle.bytes().split_first_chunk::<4>().ok_or(Status::BadHandle)?;
    if rest.len() < 3 {
        return Err(Status::BadHandle);
    }
    Ok(u32::from_be_bytes(*id))
}

fn decode(handle: &Handle) -> Result<KernelHandle, Errno> {
    let bytes = handle.bytes().get(4..).ok_or(Errno::STALE)?;
    let (kind, bytes) = bytes.split_first_chunk::<2>().ok_or(Errno::STALE)?;
    KernelHandle::new(i32::from(u16::from_be_bytes(*kind)), bytes).ok_or(Errno::STALE)
}

/// Makes a mount of our own of the same directory, without the mounts below it. Its root must be
/// the directory that was opened.
fn copy_of_mount(_: &AsServer, path: &Path, shared: &OwnedFd) -> Option<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = open_tree(CWD, path, flags).ok()?;
    let (ours, theirs) = (fstat(&copy).ok()?, fstat(shared).ok()?);
    let same = (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino);
    same.then_some(copy)
}

fn still_mount(server: &AsServer, path: &Path, top: &OwnedFd) -> Option<OwnedFd> {
    let copy = copy_of_mount(server, path, top)?;
    sys::set_mount_noatime(copy.as_fd()).ok()?;
    openat(&copy, c".", DIRECTORY, Mode::empty()).ok()
}

fn naming_of(top: BorrowedFd<'_>) -> (Naming, i32) {
    for purpose in [HandleUse::Open, HandleUse::Identify] {
        if let Ok((handle, mount_id)) = sys::name_to_handle(top, c"", purpose)
            && u16::try_from(handle.kind).is_ok_and(|kind| kind != KIND_INODE)
        {
            return (Naming::Kernel(purpose), mount_id);
        }
    }
    (Naming::Inode, -1)
}

/// Returns the volume's number, its fsid and its device. The file system's own id outlives
/// restarts; the few without one use the device number.
fn numbers(top: &OwnedFd) -> Result<(u32, u64, u64), Errno> {
    let device = fstat(top)?.st_dev;
    let mut fsid = rustix::fs::fstatvfs(top)?.f_fsid;
    if fsid == 0 {
        fsid = device;
    }
    Ok(((fsid ^ (fsid >> 32)) as u32, fsid, device))
}
