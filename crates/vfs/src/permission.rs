//! Permission checks in user space: modes, POSIX ACLs, supplementary groups, sticky directories and
//! changes of attributes, as the Linux kernel decides them for a process with the caller's ids.
//! Root has all capabilities. `crates/backend/tests/permission.rs` compares every rule with the
//! kernel's own.

use std::ops::BitOr;

use crate::{Access, Acl, AclTag, Attr, Cred, FileType, Mode, Result, SetAttr, SetTime};
use crate::{Gid, IdDomain, Status, Uid};

/// Read, write and execute permission, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permissions(u8);

impl Permissions {
    /// Read data or names.
    pub const READ: Self = Self(4);
    /// Change data or directory entries.
    pub const WRITE: Self = Self(2);
    /// Execute, or look up names.
    pub const EXECUTE: Self = Self(1);

    const fn within(self, digit: u8) -> bool {
        self.0 & !digit == 0
    }
}

impl BitOr for Permissions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The attributes and the ACL that decide about an object.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a, S: IdDomain> {
    /// Its attributes.
    pub attr: &'a Attr<S>,
    /// Its access ACL, unless that is equivalent to the mode.
    pub acl: Option<&'a Acl<S>>,
}

impl<S: IdDomain> Object<'_, S> {
    /// Returns whether the caller has all of `wanted`.
    ///
    /// Two rules of the kernel are surprising: a named entry has no effect if the mask is empty,
    /// and with several groups a single one must permit all of `wanted`.
    #[must_use]
    pub fn permits(self, cred: &Cred<S>, wanted: Permissions) -> bool {
        self.digits_permit(cred, wanted) || cred.is_root() && self.root_may(wanted)
    }

    /// Returns the result of [`Object::permits`] as an outcome.
    ///
    /// # Errors
    /// [`Status::Acces`] if the caller lacks a permission.
    pub fn check(self, cred: &Cred<S>, wanted: Permissions) -> Result<()> {
        if self.permits(cred, wanted) { Ok(()) } else { Err(Status::Acces) }
    }

    /// The rights among `wanted` that the caller has; those that make no sense for the object's
    /// type are left out, as RFC 1813 (3.3.4) permits.
    #[must_use]
    pub fn access(self, cred: &Cred<S>, wanted: Access) -> Access {
        let table =
            if self.attr.file_type == FileType::Directory { DIRECTORY_RIGHTS } else { FILE_RIGHTS };
        table
            .iter()
            .filter(|(right, _)| wanted.contains(*right))
            .filter(|(_, permissions)| self.permits(cred, *permissions))
            .fold(Access::NONE, |granted, (right, _)| granted | *right)
    }

    /// Checks that the caller may read a file's data over NFS, where a client opened the file
    /// earlier. The owner always may, and so may callers who may execute the file.
    ///
    /// # Errors
    /// [`Status::Acces`].
    pub fn check_read_data(self, cred: &Cred<S>) -> Result<()> {
        let allowed = self.is_owner(cred)
            || self.permits(cred, Permissions::READ)
            || self.permits(cred, Permissions::EXECUTE);
        if allowed { Ok(()) } else { Err(Status::Acces) }
    }

    /// Checks that the caller may write a file's data or change its length over NFS; the owner
    /// always may.
    ///
    /// # Errors
    /// [`Status::Acces`].
    pub fn check_write_data(self, cred: &Cred<S>) -> Result<()> {
        if self.is_owner(cred) { Ok(()) } else { self.check(cred, Permissions::WRITE) }
    }

    /// Checks that the caller may change mode, ACL or times as the owner.
    ///
    /// # Errors
    /// [`Status::Perm`].
    pub fn check_owner(self, cred: &Cred<S>) -> Result<()> {
        if self.is_owner(cred) || cred.is_root() { Ok(()) } else { Err(Status::Perm) }
    }

    /// Checks that the caller may set these attributes; for the length,
    /// [`Object::check_write_data`] applies.
    ///
    /// # Errors
    /// [`Status::Perm`], [`Status::Acces`].
    pub fn check_setattr(self, cred: &Cred<S>, set: &SetAttr<S>) -> Result<()> {
        if set.uid.is_some_and(|uid| !self.may_chown(cred, uid))
            || set.gid.is_some_and(|gid| !self.may_chgrp(cred, gid))
        {
            return Err(Status::Perm);
        }
        if set.mode.is_some() {
            self.check_owner(cred)?;
        }
        if set.size.is_some() {
            self.check_write_data(cred)?;
        }
        self.check_times(cred, set)
    }

    /// Checks that the caller may take `entry` out of this directory, or give its name to another
    /// object.
    ///
    /// # Errors
    /// [`Status::Acces`] without write permission; [`Status::Perm`] by the sticky bit.
    pub fn check_delete(self, cred: &Cred<S>, entry: &Attr<S>) -> Result<()> {
        self.check(cred, Permissions::WRITE | Permissions::EXECUTE)?;
        let sticky = self.attr.mode.bits() & STICKY != 0;
        if sticky && cred.uid != entry.uid && !self.is_owner(cred) && !cred.is_root() {
            return Err(Status::Perm);
        }
        Ok(())
    }

    fn is_owner(self, cred: &Cred<S>) -> bool {
        cred.uid == self.attr.uid
    }

    fn digits_permit(self, cred: &Cred<S>, wanted: Permissions) -> bool {
        let mode = self.attr.mode.bits();
        if self.is_owner(cred) {
            return wanted.within((mode >> 6) as u8);
        }
        match self.acl {
            Some(acl) if mode & GROUP_DIGIT != 0 => acl_permits(acl, self.attr.gid, cred, wanted),
            _ if cred.is_member(self.attr.gid) => wanted.within((mode >> 3) as u8),
            _ => wanted.within(mode as u8),
        }
    }

    /// The superuser may do anything except execute a file without any execute bit.
    fn root_may(self, wanted: Permissions) -> bool {
        self.attr.file_type == FileType::Directory
            || wanted.0 & Permissions::EXECUTE.0 == 0
            || self.attr.mode.bits() & EXECUTE_DIGITS != 0
    }

    fn may_chown(self, cred: &Cred<S>, uid: Uid<S>) -> bool {
        cred.is_root() || self.is_owner(cred) && uid == self.attr.uid
    }

    fn may_chgrp(self, cred: &Cred<S>, gid: Gid<S>) -> bool {
        let known = gid == self.attr.gid || cred.is_member(gid);
        cred.is_root() || self.is_owner(cred) && known
    }

    /// A caller who may write may set both times to now; other changes of times need the owner.
    fn check_times(self, cred: &Cred<S>, set: &SetAttr<S>) -> Result<()> {
        match (set.atime, set.mtime) {
            (None, None) => Ok(()),
            (Some(SetTime::Now), Some(SetTime::Now)) => {
                self.check_owner(cred).or_else(|_| self.check(cred, Permissions::WRITE))
            }
            _ => self.check_owner(cred),
        }
    }
}

/// Returns the mode of an object after the caller wrote to it or truncated it: set-id bits are
/// cleared, unless the caller is root.
#[must_use]
pub fn mode_after_write<S: IdDomain>(cred: &Cred<S>, attr: &Attr<S>) -> Mode {
    if cred.is_root() || attr.file_type != FileType::Regular {
        return attr.mode;
    }
    drop_set_ids(cred, attr)
}

/// Returns the mode of an object after the caller changed its owner or group: set-id bits are
/// cleared, except on a directory.
#[must_use]
pub fn mode_after_chown<S: IdDomain>(cred: &Cred<S>, attr: &Attr<S>) -> Mode {
    if attr.file_type == FileType::Directory { attr.mode } else { drop_set_ids(cred, attr) }
}

/// The mode that a chmod to `mode` gives an object of group `gid`: a caller who is no member of the
/// group cannot set its set-group-id bit.
#[must_use]
pub fn mode_after_chmod<S: IdDomain>(cred: &Cred<S>, gid: Gid<S>, mode: Mode) -> Mode {
    if cred.is_root() || cred.is_member(gid) {
        mode
    } else {
        Mode::new(mode.bits() & !SET_GROUP_ID)
    }
}

/// Returns group and mode of a new object of type `file_type` that the caller makes in `dir` with
/// `mode`: a set-group-id directory passes on its group, and to directories also the bit.
#[must_use]
pub fn group_and_mode_of_new<S: IdDomain>(
    cred: &Cred<S>,
    dir: &Attr<S>,
    file_type: FileType,
    mode: Mode,
) -> (Gid<S>, Mode) {
    if dir.mode.bits() & SET_GROUP_ID == 0 {
        return (cred.gid, mode);
    }
    let executable = SET_GROUP_ID | GROUP_EXECUTE;
    match file_type {
        FileType::Directory => (dir.gid, Mode::new(mode.bits() | SET_GROUP_ID)),
        _ if mode.bits() & executable == executable => {
            (dir.gid, mode_after_chmod(cred, dir.gid, mode))
        }
        _ => (dir.gid, mode),
    }
}

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const STICKY: u32 = 0o1000;
/// The rights of the group in a mode, or of the mask if the object has an ACL.
pub const GROUP_DIGIT: u32 = 0o070;
const GROUP_EXECUTE: u32 = 0o010;
const EXECUTE_DIGITS: u32 = 0o111;

const WRITE_ENTRIES: Permissions = Permissions(3);

const DIRECTORY_RIGHTS: &[(Access, Permissions)] = &[
    (Access::READ, Permissions::READ),
    (Access::LOOKUP, Permissions::EXECUTE),
    (Access::MODIFY, WRITE_ENTRIES),
    (Access::EXTEND, WRITE_ENTRIES),
    (Access::DELETE, WRITE_ENTRIES),
];

const FILE_RIGHTS: &[(Access, Permissions)] = &[
    (Access::READ, Permissions::READ),
    (Access::MODIFY, Permissions::WRITE),
    (Access::EXTEND, Permissions::WRITE),
    (Access::EXECUTE, Permissions::EXECUTE),
];

/// The set-group-id bit without group execute once meant mandatory locking, so that a member of the
/// group keeps it.
fn drop_set_ids<S: IdDomain>(cred: &Cred<S>, attr: &Attr<S>) -> Mode {
    let bits = attr.mode.bits();
    let keeps_group = bits & GROUP_EXECUTE == 0 && (cred.is_root() || cred.is_member(attr.gid));
    let dropped = if keeps_group { SET_USER_ID } else { SET_USER_ID | SET_GROUP_ID };
    Mode::new(bits & !dropped)
}

/// The algorithm of POSIX.1e draft 17, 23.1.5, for a caller who is not the owner.
fn acl_permits<S: IdDomain>(
    acl: &Acl<S>,
    group: Gid<S>,
    cred: &Cred<S>,
    wanted: Permissions,
) -> bool {
    let digit = |tag| acl.entries.iter().find(|entry| entry.tag == tag).map(|e| e.permissions);
    let mask = digit(AclTag::Mask).unwrap_or(7);
    if let Some(named) = digit(AclTag::User(cred.uid)) {
        return wanted.within(named & mask);
    }
    let mut member = false;
    for entry in &acl.entries {
        let applies = match entry.tag {
            AclTag::GroupObj => cred.is_member(group),
            AclTag::Group(gid) => cred.is_member(gid),
            _ => false,
        };
        if applies && wanted.within(entry.permissions) {
            return wanted.within(entry.permissions & mask);
        }
        member |= applies;
    }
    !member && digit(AclTag::Other).is_some_and(|other| wanted.within(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AclEntry, Disk};

    fn attr(mode: u32, uid: u32, gid: u32) -> Attr<Disk> {
        Attr {
            file_type: FileType::Regular,
            mode: Mode::new(mode),
            links: 1,
            uid: Uid::new(uid),
            gid: Gid::new(gid),
            size: 0,
            used: 0,
            device: Default::default(),
            fsid: 0,
            fileid: 0,
            atime: Default::default(),
            mtime: Default::default(),
            ctime: Default::default(),
            change: 0,
        }
    }

    fn cred(uid: u32, gid: u32, groups: &[u32]) -> Cred<Disk> {
        Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(groups.iter().map(|g| Gid::new(*g)))
    }

    fn permits(attr: &Attr<Disk>, acl: Option<&Acl<Disk>>, cred: &Cred<Disk>, digit: u8) -> bool {
        Object { attr, acl }.permits(cred, Permissions(digit))
    }

    #[test]
    fn the_first_class_that_applies_decides_alone() {
        let file = attr(0o077, 10, 20);
        assert!(!permits(&file, None, &cred(10, 20, &[]), 4), "owner");
        assert!(permits(&file, None, &cred(11, 30, &[20]), 7), "supplementary group");
        let file = attr(0o604, 10, 20);
        assert!(!permits(&file, None, &cred(11, 20, &[]), 4), "group below others");
        assert!(permits(&file, None, &cred(11, 30, &[]), 4), "others");
    }

    #[test]
    fn root_executes_only_what_someone_may_execute() {
        assert!(permits(&attr(0, 10, 20), None, &cred(0, 0, &[]), 6));
        assert!(!permits(&attr(0o666, 10, 20), None, &cred(0, 0, &[]), 1));
        assert!(permits(&attr(0o010, 10, 20), None, &cred(0, 0, &[]), 1));
    }

    #[test]
    fn one_group_entry_must_permit_all_that_is_wanted() {
        let entry = |tag, permissions| AclEntry { tag, permissions };
        let acl = Acl {
            entries: vec![
                entry(AclTag::UserObj, 7),
                entry(AclTag::GroupObj, 4),
                entry(AclTag::Group(Gid::new(30)), 2),
                entry(AclTag::Mask, 6),
                entry(AclTag::Other, 7),
            ],
        };
        let file = attr(0o767, 10, 20);
        let both = cred(11, 20, &[30]);
        assert!(permits(&file, Some(&acl), &both, 4));
        assert!(permits(&file, Some(&acl), &both, 2));
        assert!(!permits(&file, Some(&acl), &both, 6));
        assert!(permits(&file, Some(&acl), &cred(12, 12, &[]), 7), "others");
    }

    #[test]
    fn sticky_directories_keep_strangers_entries() {
        let dir = Attr { file_type: FileType::Directory, ..attr(0o1777, 10, 20) };
        let entry = attr(0o666, 11, 20);
        let verdict =
            |uid| Object { attr: &dir, acl: None }.check_delete(&cred(uid, 5, &[]), &entry);
        assert_eq!(verdict(12), Err(Status::Perm));
        assert!([0, 10, 11].into_iter().all(|uid| verdict(uid).is_ok()));
    }

    #[test]
    fn access_leaves_out_what_makes_no_sense() {
        let file = attr(0o777, 10, 20);
        let granted = Object { attr: &file, acl: None }.access(&cred(1, 1, &[]), Access::ALL);
        assert!(!granted.intersects(Access::LOOKUP | Access::DELETE));
        assert!(granted.contains(Access::READ | Access::EXECUTE | Access::MODIFY));
    }
}
