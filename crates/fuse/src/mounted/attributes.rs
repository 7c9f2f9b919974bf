//! Requests about attributes: GETATTR, SETATTR, ACCESS, STATFS.

use comity_vfs::{Access, Disk, FileType, Gid, Mode, Properties, SetAttr, SetTime, Space, Uid};
use rustix::io::{self, Errno};

use super::{KnownNode, Mounted};
use crate::callers::Requester;

/// The arguments of SETATTR.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NewAttributes {
    /// Permission bits; the file type in the upper bits is ignored.
    pub(crate) mode: Option<u32>,
    /// Owner.
    pub(crate) uid: Option<u32>,
    /// Group.
    pub(crate) gid: Option<u32>,
    /// Length in bytes.
    pub(crate) size: Option<u64>,
    /// Time of last access.
    pub(crate) atime: Option<SetTime>,
    /// Time of last modification of data.
    pub(crate) mtime: Option<SetTime>,
}

impl NewAttributes {
    fn set(self) -> SetAttr<Disk> {
        SetAttr {
            mode: self.mode.map(Mode::new),
            uid: self.uid.map(Uid::new),
            gid: self.gid.map(Gid::new),
            size: self.size,
            atime: self.atime,
            mtime: self.mtime,
        }
    }
}

/// Converts the mask of access(2) to rights on an object of this type.
fn rights(mask: u32, file_type: FileType) -> Access {
    let is_dir = file_type == FileType::Directory;
    let (write, execute) = match is_dir {
        true => (Access::MODIFY | Access::EXTEND, Access::LOOKUP),
        false => (Access::MODIFY, Access::EXECUTE),
    };
    let table = [(4, Access::READ), (2, write), (1, execute)];
    let wanted = table.into_iter().filter(|(bit, _)| mask & bit != 0);
    wanted.fold(Access::NONE, |all, (_, right)| all | right)
}

impl Mounted {
    pub(crate) fn getattr(&self, who: Requester, number: u64) -> io::Result<KnownNode> {
        let node = self.inodes.handle(number)?;
        let attr = self.verb(who, || self.fs.getattr(&node))?;
        Ok(self.known(number, &node, attr))
    }

    pub(crate) fn setattr(
        &self,
        who: Requester,
        number: u64,
        open: Option<u64>,
        new: NewAttributes,
    ) -> io::Result<KnownNode> {
        let (node, cred) = (self.inodes.handle(number)?, self.cred(who));
        let set = new.set();
        if new.size.is_some() && open.is_none() && !self.kernel_judges {
            // truncate(2) and O_TRUNC need the right to write, which a server does not require of
            // the owner of the file (RFC 8881, 18.30.4).
            self.judge(who, (&cred, &node), Access::MODIFY)?;
        }
        let mut changed = self.verb(who, || self.fs.setattr(&cred, &node, &set, None));
        if let (Some(open), Err(Errno::ACCESS)) = (open.filter(|_| new.size.is_some()), &changed) {
            // ftruncate(2) needs only the access with which the file was opened.
            let opener = self.opens.get(open)?.cred.clone();
            changed = self.verb(who, || self.fs.setattr(&opener, &node, &set, None));
        }
        let change = changed?;
        self.note(number, &change);
        match change.after {
            Some(attr) => Ok(self.known(number, &node, attr)),
            None => self.getattr(who, number),
        }
    }

    /// Answers access(2) and chdir(2).
    pub(crate) fn access(&self, who: Requester, number: u64, mask: u32) -> io::Result<()> {
        let (node, cred) = (self.inodes.handle(number)?, self.cred(who));
        let (granted, attr) = self.verb(who, || self.fs.access(&cred, &node, Access::ALL))?;
        let wanted = rights(mask, attr.file_type);
        if granted.contains(wanted) { Ok(()) } else { Err(Errno::ACCESS) }
    }

    pub(crate) fn statfs(&self, who: Requester, number: u64) -> io::Result<(Space, Properties)> {
        let (node, cred) = (self.inodes.handle(number)?, self.cred(who));
        let space = self.verb(who, || self.fs.statfs(&cred, &node))?;
        Ok((space, self.verb(who, || self.fs.properties(&node))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_masks_become_rights_on_files_and_directories() {
        assert_eq!(rights(7, FileType::Regular), Access::READ | Access::MODIFY | Access::EXECUTE);
        let all = Access::READ | Access::MODIFY | Access::EXTEND | Access::LOOKUP;
        assert_eq!(rights(7, FileType::Directory), all);
        assert_eq!(rights(0, FileType::Regular), Access::NONE);
    }
}
