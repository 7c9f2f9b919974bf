use std::ffi::CString;

use comity_vfs::limits::XATTR_BYTES_MAX;
use comity_vfs::permission::{GROUP_DIGIT, Object, Permissions};
use comity_vfs::{
    Acl, AclKind, Attr, Change, Cred, Disk, FileType, Handle, Mode, Name, Result, Status, XattrMode,
};
use rustix::io::Errno;

use super::Ceph;
use super::ffi::{CephInode, SET_MODE, Statx};
use super::limits::XATTR_NAME_BYTES_MAX;
use crate::posix_acl;

/// The prefix of user attributes: only these are shown, without the prefix.
const USER: &[u8] = b"user.";

impl Ceph {
    /// Reads an ACL; `None` if there is none.
    pub(super) fn read_acl(
        &self,
        inode: &CephInode<'_>,
        kind: AclKind,
    ) -> Result<Option<Acl<Disk>>> {
        match inode.getxattr(posix_acl::name(kind), XATTR_BYTES_MAX) {
            Ok(value) => posix_acl::parse(&value).map(Some),
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(self.status(errno)),
        }
    }

    /// See [`comity_vfs::Fs::getacl`].
    pub(super) fn get_acl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        let (_, inode, attr) = self.find(node)?;
        if attr.file_type == FileType::Symlink {
            return Err(Status::NotSupp);
        }
        self.read_acl(&inode, kind)
    }

    /// See [`comity_vfs::Fs::setacl`].
    pub(super) fn set_acl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        acl.map_or(Ok(()), Acl::check)?;
        let changed = self.change(node, |_, inode, attr| {
            if attr.file_type == FileType::Symlink {
                return Err(Status::NotSupp);
            }
            Object { attr, acl: None }.check_owner(cred)?;
            if kind == AclKind::Default && attr.file_type != FileType::Directory {
                return Err(Status::Inval);
            }
            self.replace_acl(inode, attr, kind, acl)
        });
        changed.map(|(_, change)| change)
    }

    fn replace_acl(
        &self,
        inode: &CephInode<'_>,
        attr: &Attr<Disk>,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<()> {
        let (name, perms) = (posix_acl::name(kind), self.mount.root_perms());
        let stored = acl.filter(|acl| kind == AclKind::Default || !acl.is_minimal());
        if let (None, AclKind::Access, Some(acl)) = (stored, kind, acl) {
            // The mask becomes the rights of the group with the ACL's end, before the mode is set.
            let (old, new) = (attr.mode.bits(), acl.mode(attr.mode).bits());
            self.set_mode(inode, Mode::new(old & (new | !GROUP_DIGIT)))?;
        }
        let outcome = match stored {
            Some(acl) => inode.setxattr(name, &posix_acl::compose(acl), 0, perms),
            None => match inode.removexattr(name, perms) {
                Err(Errno::NODATA) => Ok(()),
                outcome => outcome,
            },
        };
        self.done(outcome)?;
        match (kind, acl) {
            (AclKind::Access, Some(acl)) => self.set_mode(inode, acl.mode(attr.mode)),
            _ => Ok(()),
        }
    }

    /// Sets the permission bits.
    pub(super) fn set_mode(&self, inode: &CephInode<'_>, mode: Mode) -> Result<()> {
        let stat = Statx { mode: mode.bits() as u16, ..Statx::default() };
        self.done(inode.setattr(stat, SET_MODE))
    }

    /// See [`comity_vfs::Fs::getxattr`].
    pub(super) fn get_attribute(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
    ) -> Result<Vec<u8>> {
        let inode = self.bearer(cred, node)?.ok_or(Status::NoXattr)?;
        self.done(inode.getxattr(&prefixed(name)?, XATTR_BYTES_MAX))
    }

    /// See [`comity_vfs::Fs::listxattr`].
    pub(super) fn attribute_names(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
    ) -> Result<Vec<Box<[u8]>>> {
        let Some(inode) = self.bearer(cred, node)? else { return Ok(Vec::new()) };
        let names = self.done(inode.listxattr(XATTR_BYTES_MAX))?;
        let ours = names.split(|byte| *byte == 0).filter_map(|name| name.strip_prefix(USER));
        Ok(ours.map(Box::from).collect())
    }

    /// See [`comity_vfs::Fs::setxattr`].
    pub(super) fn set_attribute(
        &self,
        cred: &Cred<Disk>,
        (node, name): (&Handle, Name<'_>),
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        let name = prefixed(name)?;
        if value.is_some_and(|value| value.len() > XATTR_BYTES_MAX) {
            return Err(Status::XattrTooBig);
        }
        let changed = self.change(node, |_, inode, attr| {
            if !bears(attr) {
                return Err(Status::Perm);
            }
            let acl = self.acl_of(inode, attr)?;
            Object { attr, acl: acl.as_ref() }.check(cred, Permissions::WRITE)?;
            let perms = self.mount.root_perms();
            self.done(match value {
                Some(value) => inode.setxattr(&name, value, flags(mode), perms),
                None => inode.removexattr(&name, perms),
            })
        });
        changed.map(|(_, change)| change)
    }

    /// Returns an object whose extended attributes may be read, if it can have any.
    fn bearer(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Option<CephInode<'_>>> {
        let (_, inode, attr) = self.find(node)?;
        if !bears(&attr) {
            return Ok(None);
        }
        let acl = self.acl_of(&inode, &attr)?;
        Object { attr: &attr, acl: acl.as_ref() }.check(cred, Permissions::READ)?;
        Ok(Some(inode))
    }
}

/// Only files and directories have user attributes (xattr(7)).
const fn bears(attr: &Attr<Disk>) -> bool {
    matches!(attr.file_type, FileType::Regular | FileType::Directory)
}

fn prefixed(name: Name<'_>) -> Result<CString> {
    if USER.len() + name.bytes().len() > XATTR_NAME_BYTES_MAX {
        return Err(Status::NameTooLong);
    }
    CString::new([USER, name.bytes()].concat()).map_err(|_| Status::Inval)
}

const fn flags(mode: XattrMode) -> i32 {
    match mode {
        XattrMode::Either => 0,
        XattrMode::Create => libc::XATTR_CREATE,
        XattrMode::Replace => libc::XATTR_REPLACE,
    }
}
