//! Requests about open files: OPEN, CREATE, OPENDIR, FLUSH, FSYNC, RELEASE.

use comity_vfs::{Access, Attr, Create, Cred, Disk, FileType, Handle, Node};
use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use super::names::{NewMode, name};
use super::{KnownNode, Mounted, told};
use crate::callers::Requester;
use crate::lower::{LockRequest, Opening};
use crate::opens::OpenFile;

/// An open as it is handed to the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handed {
    /// The number by which the kernel names the open from now on.
    pub(crate) open: u64,
    /// True if the kernel's pages of the file are still good.
    pub(crate) keeps_pages: bool,
}

/// The flags of open(2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFlags(pub(crate) u32);

/// The kernel opens a program to execute it (`FMODE_EXEC`).
const EXECUTE: u32 = 0x20;

impl OpenFlags {
    fn flags(self) -> OFlags {
        OFlags::from_bits_retain(self.0)
    }

    /// The rights that an open needs. Who may execute a file may have it read for that.
    fn rights(self) -> Access {
        let access_mode = self.flags() & OFlags::ACCMODE;
        let execute = self.0 & EXECUTE != 0 && access_mode == OFlags::RDONLY;
        match access_mode {
            _ if execute => Access::EXECUTE,
            OFlags::RDONLY => Access::READ,
            OFlags::WRONLY => Access::MODIFY,
            _ => Access::READ | Access::MODIFY,
        }
    }

    /// Returns whether writes go to the end of the file, wherever that is.
    pub(super) fn appends(self) -> bool {
        self.flags().contains(OFlags::APPEND)
    }
}

impl Mounted {
    pub(crate) fn open(&self, who: Requester, number: u64, flags: OpenFlags) -> io::Result<Handed> {
        let (handle, cred, rights) = (self.inodes.handle(number)?, self.cred(who), flags.rights());
        let attr = self.judge(who, (&cred, &handle), rights)?;
        self.open_judged(OpenFile { number, handle, cred, rights }, &attr)
    }

    /// The file's attributes, if the caller has the rights.
    fn judge(
        &self,
        who: Requester,
        (cred, node): (&Cred<Disk>, &Handle),
        rights: Access,
    ) -> io::Result<Attr<Disk>> {
        let (granted, attr) = self.verb(who, || self.fs.access(cred, node, rights))?;
        if granted.contains(rights) { Ok(attr) } else { Err(Errno::ACCESS) }
    }

    fn open_judged(&self, file: OpenFile, attr: &Attr<Disk>) -> io::Result<Handed> {
        let (number, handle, rights) = (file.number, file.handle, file.rights);
        told(self.lower.open(&file.cred, &handle, Opening { rights }))?;
        let cred = file.cred.clone();
        let open = self.opens.insert(file).inspect_err(|_| {
            self.lower.release(&cred, &handle, Opening { rights });
        })?;
        let keeps_pages = self.inodes.open(number, Some(attr.change));
        Ok(Handed { open, keeps_pages })
    }

    /// Makes a file and opens it; without O_EXCL one that is there is opened.
    pub(crate) fn create(
        &self,
        who: Requester,
        (dir, bytes): (u64, &[u8]),
        mode: NewMode,
        flags: OpenFlags,
    ) -> io::Result<(KnownNode, Handed)> {
        let (parent, cred) = (self.inodes.handle(dir)?, self.cred(who));
        let (entry, how) = (name(bytes)?, Create::Guarded(self.new_attributes(dir, mode)?));
        let node = match self.verb(who, || self.fs.create(&cred, &parent, entry, &how)) {
            Ok(made) => {
                self.note(dir, &made.change);
                made.value
            }
            Err(Errno::EXIST) if !flags.flags().contains(OFlags::EXCL) => {
                let found = self.verb(who, || self.fs.lookup(&cred, &parent, entry))?;
                self.judge_found(who, &cred, &found.node, flags)?;
                found.node
            }
            Err(error) => return Err(error),
        };
        let known = self.introduce(&node, Some((dir, bytes.into())))?;
        let (number, handle, rights) = (known.number, node.handle, flags.rights());
        let handed = self.open_judged(OpenFile { number, handle, cred, rights }, &node.attr);
        // The kernel does not learn of an object with an error.
        let handed = handed.inspect_err(|_| self.inodes.forget(number, 1))?;
        Ok((known, handed))
    }

    fn judge_found(
        &self,
        who: Requester,
        cred: &Cred<Disk>,
        node: &Node<Disk>,
        flags: OpenFlags,
    ) -> io::Result<()> {
        match node.attr.file_type {
            FileType::Directory => Err(Errno::ISDIR),
            FileType::Symlink => Err(Errno::LOOP),
            _ => self.judge(who, (cred, &node.handle), flags.rights()).map(|_| ()),
        }
    }

    pub(crate) fn opendir(&self, who: Requester, number: u64) -> io::Result<u64> {
        let (handle, cred, rights) = (self.inodes.handle(number)?, self.cred(who), Access::READ);
        self.judge(who, (&cred, &handle), rights)?;
        self.opens.insert(OpenFile { number, handle, cred, rights })
    }

    /// Ends an open of a directory.
    pub(crate) fn releasedir(&self, open: u64) {
        self.opens.remove(open);
    }

    /// A descriptor is closed: others are to see what was written through it, and the locks of its
    /// owner go.
    pub(crate) fn flush(&self, who: Requester, open: u64, owner: u64) -> io::Result<()> {
        let file = self.opens.get(open)?;
        self.unlock_all(who, &file, owner);
        self.verb(who, || self.lower.flush(&file.cred, &file.handle))
    }

    /// Puts all that was written to the file, or done in the directory, on stable storage.
    pub(crate) fn fsync(&self, who: Requester, number: u64) -> io::Result<()> {
        let node = self.inodes.handle(number)?;
        self.verb(who, || self.fs.commit(&node)).map(|_| ())
    }

    /// Ends an open of a file. `flock_owner` is given if it held locks of flock(2).
    pub(crate) fn release(&self, who: Requester, open: u64, flock_owner: Option<u64>) {
        let Some(file) = self.opens.remove(open) else { return };
        if let Some(owner) = flock_owner {
            self.unlock_all(who, &file, owner);
        }
        self.lower.release(&file.cred, &file.handle, Opening { rights: file.rights });
        if self.inodes.release(file.number) == 0 {
            self.remove_hidden(&file.handle);
        }
    }

    fn unlock_all(&self, who: Requester, file: &OpenFile, owner: u64) {
        let Some(locks) = self.lower.locks() else { return };
        let request = LockRequest { owner, bytes: (0, u64::MAX), kind: None, pid: who.pid };
        if let Err(status) = locks.lock(&file.cred, &file.handle, &request) {
            tracing::warn!(%status, "locks of a file that was closed may still be held");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_needs_the_rights_of_its_mode() {
        let rights = |flags: OFlags| OpenFlags(flags.bits()).rights();
        assert_eq!(rights(OFlags::RDONLY), Access::READ);
        assert_eq!(rights(OFlags::WRONLY | OFlags::TRUNC), Access::MODIFY);
        assert_eq!(rights(OFlags::RDWR | OFlags::APPEND), Access::READ | Access::MODIFY);
        assert_eq!(OpenFlags(EXECUTE).rights(), Access::EXECUTE);
        assert!(OpenFlags(OFlags::APPEND.bits()).appends());
    }
}
