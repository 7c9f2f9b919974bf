use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use comity_vfs::{
    Create, Cred, Disk, FileType, Handle, Made, Name, Result, SetAttr, Special, Status,
};
use rustix::fs::{AtFlags, CWD, FileType as Kind, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::fs::{fstat, futimens, linkat, mkdirat, mknodat, openat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::lookup::found_node;
use crate::default_modes::{DIRECTORY_MODE, FILE_MODE};
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::handles::node::{Node, Use};
use crate::passthrough::handles::open_handle::link_of;
use crate::verifier::{EXCLUSIVE_MODE, set_of_verifier, times_of_verifier};
use crate::zero_name::ZeroName;

/// A new object: its node and its attributes from the kernel.
type New = (Arc<Node>, Stat);

/// Set-id bits, which `mkdirat` does not take.
const SET_ID_BITS: u32 = 0o6000;

impl Passthrough {
    /// See [`comity_vfs::Fs::create`].
    pub(crate) fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        self.make(cred, dir, name, |dir, name| {
            let made = match how {
                Create::Unchecked(set) | Create::Guarded(set) => {
                    self.create_new(cred, dir, name, set)
                }
                Create::Exclusive(verifier) => self.create_exclusive(cred, dir, name, *verifier),
            };
            match made {
                Err(Status::Exist) => self.take_existing(cred, dir, name, how),
                made => made,
            }
        })
    }

    /// See [`comity_vfs::Fs::mkdir`].
    pub(crate) fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let mode = set.mode.unwrap_or(DIRECTORY_MODE).bits();
        let later = SetAttr {
            mode: set.mode.filter(|mode| mode.bits() & SET_ID_BITS != 0),
            size: None,
            ..*set
        };
        self.make(cred, dir, name, |dir, name| {
            mkdirat(dir.fd(), name, Mode::from_raw_mode(mode)).map_err(status)?;
            self.finish(cred, dir, name, &later)
                .inspect_err(|_| forget(dir.fd(), name, AtFlags::REMOVEDIR))
        })
    }

    /// See [`comity_vfs::Fs::symlink`].
    pub(crate) fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        if target.is_empty() || target.contains(&0) {
            return Err(Status::Inval);
        }
        // A link has no mode of its own on Linux, and its length is its target's.
        let later = SetAttr { mode: None, size: None, ..*set };
        self.make(cred, dir, name, |dir, name| {
            symlinkat(target, dir.fd(), name).map_err(status)?;
            self.finish(cred, dir, name, &later)
                .inspect_err(|_| forget(dir.fd(), name, AtFlags::empty()))
        })
    }

    /// See [`comity_vfs::Fs::mknod`].
    pub(crate) fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let (kind, device) = match special {
            Special::Block(device) => (Kind::BlockDevice, device.checked()?),
            Special::Character(device) => (Kind::CharacterDevice, device.checked()?),
            Special::Fifo => (Kind::Fifo, comity_vfs::Device::default()),
            Special::Socket => (Kind::Socket, comity_vfs::Device::default()),
        };
        let device = rustix::fs::makedev(device.major, device.minor);
        let mode = Mode::from_raw_mode(set.mode.unwrap_or(FILE_MODE).bits());
        let later = SetAttr { mode: None, size: None, ..*set };
        self.make(cred, dir, name, |dir, name| {
            mknodat(dir.fd(), name, kind, mode, device).map_err(status)?;
            self.finish(cred, dir, name, &later)
                .inspect_err(|_| forget(dir.fd(), name, AtFlags::empty()))
        })
    }

    /// Makes an object in a directory by `work`, under the caller's identity.
    fn make(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        work: impl FnOnce(&Node, &CStr) -> Result<New>,
    ) -> Result<Made<Disk>> {
        let dir = self.directory(dir)?;
        let name = ZeroName::new(name);
        let ((node, stat), change) = self.change_directory(&dir, || {
            self.identity.caller(cred)?;
            work(&dir, name.as_c_str())
        })?;
        self.paths.learn(&node.handle, &dir.handle, name.as_c_str());
        Ok(Made { value: found_node(&node, &stat), change })
    }

    fn create_new(
        &self,
        cred: &Cred<Disk>,
        dir: &Node,
        name: &CStr,
        set: &SetAttr<Disk>,
    ) -> Result<New> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(set.mode.unwrap_or(FILE_MODE).bits());
        let file = self.with_descriptors(|| openat(dir.fd(), name, flags, mode))?;
        let later = SetAttr { mode: None, size: set.size.filter(|size| *size != 0), ..*set };
        self.adopt_or_forget(cred, dir, (name, file), &later)
    }

    /// Makes a file that has its verifier before it has a name, so that a server that is killed
    /// leaves either no file or one that the retry of the call knows to be its own.
    fn create_exclusive(
        &self,
        cred: &Cred<Disk>,
        dir: &Node,
        name: &CStr,
        verifier: [u8; 8],
    ) -> Result<New> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(EXCLUSIVE_MODE);
        let Ok(file) = self.with_descriptors(|| openat(dir.fd(), c".", flags, mode)) else {
            // Some file systems have no files without a name. If the caller has no right to make
            // files here, the usual call finds out whether there is one already.
            return self.create_new(cred, dir, name, &set_of_verifier(verifier));
        };
        futimens(&file, &timestamps_of_verifier(verifier)).map_err(status)?;
        linkat(CWD, link_of(file.as_fd()), dir.fd(), name, AtFlags::SYMLINK_FOLLOW)
            .map_err(status)?;
        self.adopt_or_forget(cred, dir, (name, file), &SetAttr::default())
    }

    /// Makes the node of a file that was just created, or removes the file.
    fn adopt_or_forget(
        &self,
        cred: &Cred<Disk>,
        dir: &Node,
        (name, file): (&CStr, OwnedFd),
        later: &SetAttr<Disk>,
    ) -> Result<New> {
        self.adopt_new(cred, dir, (name, file), later).inspect_err(|failure| {
            // An object that another program has put there must not be removed.
            if *failure != Status::NoEnt {
                forget(dir.fd(), name, AtFlags::empty());
            }
        })
    }

    /// Makes the node of a file that was just created; `file` becomes its descriptor for data.
    fn adopt_new(
        &self,
        cred: &Cred<Disk>,
        dir: &Node,
        (name, file): (&CStr, OwnedFd),
        later: &SetAttr<Disk>,
    ) -> Result<New> {
        let made = fstat(&file).map_err(status)?;
        let (node, stat) = self.open_entry(dir, name)?;
        if (made.st_dev, made.st_ino) != (stat.st_dev, stat.st_ino) {
            // Another program has removed the file and put another object in its place.
            return Err(Status::NoEnt);
        }
        node.keep_data(Use::Write, File::from(file));
        node.barrier.changed_attributes();
        if later.is_empty() {
            return Ok((node, stat));
        }
        self.apply(cred, &node, &stat, later)?;
        let stat = self.stat(&node)?;
        Ok((node, stat))
    }

    /// Looks up the new object `name` and sets the attributes that its creation could not set.
    fn finish(
        &self,
        cred: &Cred<Disk>,
        dir: &Node,
        name: &CStr,
        later: &SetAttr<Disk>,
    ) -> Result<New> {
        let (node, stat) = self.find(dir, name)?;
        match node.kind {
            FileType::Directory | FileType::Regular => node.barrier.changed_attributes(),
            // Neither can be opened for a barrier; the barrier of the directory covers a new one.
            _ => node.barrier.is_covered(),
        }
        if later.is_empty() {
            return Ok((node, stat));
        }
        self.apply(cred, &node, &stat, later)?;
        let stat = self.stat(&node)?;
        Ok((node, stat))
    }

    /// Handles an existing file of that name, as `how` demands.
    fn take_existing(
        &self,
        cred: &Cred<Disk>,
        dir: &Node,
        name: &CStr,
        how: &Create<Disk>,
    ) -> Result<New> {
        let (node, stat) = match (how, self.find(dir, name)?) {
            (Create::Guarded(_), _) => return Err(Status::Exist),
            (_, (node, _)) if node.kind != FileType::Regular => return Err(Status::Exist),
            (_, found) => found,
        };
        match how {
            Create::Exclusive(verifier) if has_verifier(&stat, *verifier) => Ok((node, stat)),
            Create::Unchecked(SetAttr { size: Some(size), .. }) => {
                let set = SetAttr { size: Some(*size), ..SetAttr::default() };
                self.apply(cred, &node, &stat, &set)?;
                let stat = self.stat(&node)?;
                Ok((node, stat))
            }
            Create::Unchecked(_) => Ok((node, stat)),
            _ => Err(Status::Exist),
        }
    }
}

/// Removes an object that could not be made as requested.
fn forget(dir: BorrowedFd<'_>, name: &CStr, flags: AtFlags) {
    if let Err(error) = unlinkat(dir, name, flags)
        && error != Errno::NOENT
    {
        // The name is not logged, since it may be hidden from readers of the log.
        let directory = fstat(dir).map_or(0, |stat| stat.st_ino);
        tracing::warn!(%error, directory, "a partly created object could not be removed");
        tracing::debug!(?name, directory, "the name of that object");
    }
}

fn timestamps_of_verifier(verifier: [u8; 8]) -> Timestamps {
    let (atime, mtime) = times_of_verifier(verifier);
    let whole = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
    Timestamps { last_access: whole(atime), last_modification: whole(mtime) }
}

fn has_verifier(stat: &Stat, verifier: [u8; 8]) -> bool {
    let fresh = stat.st_size == 0 && stat.st_atime_nsec == 0 && stat.st_mtime_nsec == 0;
    fresh && (stat.st_atime, stat.st_mtime) == times_of_verifier(verifier)
}
