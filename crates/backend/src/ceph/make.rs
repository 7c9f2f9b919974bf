use std::ffi::{CStr, CString};

use comity_vfs::limits::LINK_TARGET_BYTES_MAX;
use comity_vfs::permission::group_and_mode_of_new;
use comity_vfs::{
    Attr, Create, Cred, Device, Disk, FileType, Handle, Made, Mode, Name, Node, Result, SetAttr,
    Special, Status,
};

use super::Ceph;
use super::attributes::vino_of;
use super::ffi::{CephFile, CephInode, FoundInode, Perms, Vino};
use super::files::FileUse;
use super::snapshot;
use crate::default_modes::{DIRECTORY_MODE, FILE_MODE};
use crate::verifier::{set_of_verifier, times_of_verifier};
use crate::zero_name::ZeroName;

impl Ceph {
    /// See [`comity_vfs::Fs::create`].
    pub(super) fn make_file(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        let set = match how {
            Create::Unchecked(set) | Create::Guarded(set) => *set,
            Create::Exclusive(verifier) => set_of_verifier(*verifier),
        };
        self.make(cred, (dir, name), |at| {
            let create_or_take = || match self.create_new(at, &set) {
                Err(Status::Exist) => self.take_existing(at, how),
                made => made,
            };
            match create_or_take() {
                // The existing file was removed before it was taken.
                Err(Status::NoEnt) => create_or_take(),
                made => made,
            }
        })
    }

    /// See [`comity_vfs::Fs::mkdir`].
    pub(super) fn make_directory(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let mode = set.mode.unwrap_or(DIRECTORY_MODE);
        self.make(cred, (dir, name), |at| {
            let mode = at.mode(FileType::Directory, mode);
            let found = self.done(at.dir.mkdir((at.name, mode), &at.perms))?;
            self.finish_or_remove(at, found, &SetAttr { mode: None, size: None, ..*set })
        })
    }

    /// See [`comity_vfs::Fs::symlink`].
    pub(super) fn make_symlink(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        if target.len() > LINK_TARGET_BYTES_MAX {
            return Err(Status::NameTooLong);
        }
        let target = CString::new(target).ok().filter(|target| !target.is_empty());
        let target = target.ok_or(Status::Inval)?;
        self.make(cred, (dir, name), |at| {
            let found = self.done(at.dir.symlink(at.name, &target, &at.perms))?;
            self.finish_or_remove(at, found, &SetAttr { mode: None, size: None, ..*set })
        })
    }

    /// See [`comity_vfs::Fs::mknod`].
    pub(super) fn make_special(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let (kind, device) = match special {
            Special::Block(device) => (libc::S_IFBLK, device.checked()?),
            Special::Character(device) => (libc::S_IFCHR, device.checked()?),
            Special::Fifo => (libc::S_IFIFO, Device::default()),
            Special::Socket => (libc::S_IFSOCK, Device::default()),
        };
        let is_device = matches!(special, Special::Block(_) | Special::Character(_));
        let mode = set.mode.unwrap_or(FILE_MODE);
        let device = libc::makedev(device.major, device.minor);
        self.make(cred, (dir, name), |at| {
            if is_device && !cred.is_root() {
                return Err(Status::Perm);
            }
            // All objects but directories get the same mode from the directory.
            let mode = kind | at.mode(FileType::Regular, mode);
            let found = self.done(at.dir.mknod((at.name, mode), device, &at.perms))?;
            self.finish_or_remove(at, found, &SetAttr { mode: None, size: None, ..*set })
        })
    }

    /// Makes an object in a directory by `work`.
    fn make<'c>(
        &'c self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        work: impl FnOnce(&NewName<'_, 'c>) -> Result<Node<Disk>>,
    ) -> Result<Made<Disk>> {
        let name = ZeroName::new(name);
        let (value, change) = self.change_directory(dir, |dir, dir_attr| {
            snapshot::check_new_name(name.as_c_str())?;
            let perms = self.perms(cred);
            work(&NewName { cred, perms, dir, dir_attr, name: name.as_c_str() })
        })?;
        Ok(Made { value, change })
    }

    fn create_new(&self, at: &NewName<'_, '_>, set: &SetAttr<Disk>) -> Result<Node<Disk>> {
        let mode = at.mode(FileType::Regular, set.mode.unwrap_or(FILE_MODE));
        let (found, file) = self.done(at.dir.create((at.name, mode), &at.perms))?;
        let file = CephFile::adopt(&self.mount, file);
        let made = vino_of(&found.1);
        let kept = self.keep_file((made, &found.0), FileUse::Write, file);
        kept.inspect_err(|_| at.remove(made))?;
        let size = set.size.filter(|size| *size != 0);
        self.finish_or_remove(at, found, &SetAttr { mode: None, size, ..*set })
    }

    /// Sets the attributes of a new object, or removes it.
    fn finish_or_remove(
        &self,
        at: &NewName<'_, '_>,
        found: FoundInode<'_>,
        later: &SetAttr<Disk>,
    ) -> Result<Node<Disk>> {
        let made = vino_of(&found.1);
        self.finish(at.cred, found, later).inspect_err(|_| at.remove(made))
    }

    /// Sets the attributes that the creation of an object could not set.
    fn finish(
        &self,
        cred: &Cred<Disk>,
        found: FoundInode<'_>,
        later: &SetAttr<Disk>,
    ) -> Result<Node<Disk>> {
        let node = self.node(&found)?;
        if later.is_empty() {
            return Ok(node);
        }
        self.apply(cred, (&found.0, &node.attr), later)?;
        // libcephfs may keep attributes of a new object to itself. A retry of an exclusive create
        // after a crash must find the verifier among them.
        self.done(found.0.sync())?;
        Ok(Node { attr: self.attr(&found.0)?, ..node })
    }

    /// Handles an existing file of that name, as `how` demands.
    fn take_existing(&self, at: &NewName<'_, '_>, how: &Create<Disk>) -> Result<Node<Disk>> {
        if matches!(how, Create::Guarded(_)) {
            return Err(Status::Exist);
        }
        let found = self.done(at.dir.lookup(at.name, &at.perms))?;
        let node = self.node(&found)?;
        match how {
            _ if node.attr.file_type != FileType::Regular => Err(Status::Exist),
            Create::Exclusive(verifier) if has_verifier(&node, *verifier) => Ok(node),
            Create::Unchecked(SetAttr { size: Some(size), .. }) => {
                let set = SetAttr { size: Some(*size), ..SetAttr::default() };
                self.end_hold(vino_of(&found.1));
                self.finish(at.cred, found, &set)
            }
            Create::Unchecked(_) => Ok(node),
            _ => Err(Status::Exist),
        }
    }
}

/// The name of a new object, and the caller who makes it.
struct NewName<'p, 'c> {
    cred: &'p Cred<Disk>,
    perms: Perms,
    dir: &'p CephInode<'c>,
    dir_attr: &'p Attr<Disk>,
    name: &'p CStr,
}

impl NewName<'_, '_> {
    /// Returns the mode of an object that the caller makes here with `mode`.
    fn mode(&self, file_type: FileType, mode: Mode) -> u32 {
        group_and_mode_of_new(self.cred, self.dir_attr, file_type, mode).1.bits()
    }

    /// Removes an object that could not be made as requested, with the rights of the caller.
    /// Another object may have this name since.
    fn remove(&self, made: Vino) {
        let removed = self.dir.lookup(self.name, &self.perms).and_then(|(_, stat)| {
            match u32::from(stat.mode) & libc::S_IFMT {
                _ if vino_of(&stat) != made => Ok(()),
                libc::S_IFDIR => self.dir.rmdir(self.name, &self.perms),
                _ => self.dir.unlink(self.name, &self.perms),
            }
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "a partly created object could not be removed");
        }
    }
}

fn has_verifier(node: &Node<Disk>, verifier: [u8; 8]) -> bool {
    let attr = &node.attr;
    let fresh = attr.size == 0 && attr.atime.nanoseconds == 0 && attr.mtime.nanoseconds == 0;
    fresh && (attr.atime.seconds, attr.mtime.seconds) == times_of_verifier(verifier)
}
