//! Requests about open files: OPEN, CREATE, OPENDIR, FLUSH, FSYNC, RELEASE.

use std::sync::atomic::{AtomicBool, Ordering};

use comity_vfs::{
    Access, Attr, Change, Create, Cred, Disk, FileType, Handle, Name, Node, OpenAccess, OpenId,
    SetAttr,
};
use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use super::names::{NewMode, name};
use super::{KnownNode, Mounted};
use crate::callers::Requester;
use crate::opens::{ListingEnd, OpenFile};

/// An open as it is returned to the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handed {
    /// The number with which the kernel names the open in later requests.
    pub(crate) open: u64,
    /// True if the kernel's cached pages of the file are still valid.
    pub(crate) keeps_pages: bool,
}

/// The flags of open(2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFlags(pub(crate) u32);

/// The flag of an open for execution (`FMODE_EXEC`).
const EXECUTE: u32 = 0x20;

impl OpenFlags {
    fn flags(self) -> OFlags {
        OFlags::from_bits_retain(self.0)
    }

    /// The rights that an open needs. For execution, the right to execute suffices to read the
    /// file.
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

    /// The access to request from a server; `None` for an execution.
    fn access(self) -> Option<OpenAccess> {
        match self.rights() {
            Access::EXECUTE => None,
            Access::READ => Some(OpenAccess::Read),
            Access::MODIFY => Some(OpenAccess::Write),
            _ => Some(OpenAccess::Both),
        }
    }

    /// Returns whether the open must fail if the file exists.
    fn is_exclusive(self) -> bool {
        self.flags().contains(OFlags::EXCL)
    }

    /// Returns whether writes append to the file.
    pub(super) fn appends(self) -> bool {
        self.flags().contains(OFlags::APPEND)
    }
}

impl Mounted {
    pub(crate) fn open(&self, who: Requester, number: u64, flags: OpenFlags) -> io::Result<Handed> {
        let (handle, cred) = (self.inodes.handle(number)?, self.cred(who));
        let (attr, opened) = match self.open_files() {
            // A server checks rights at OPEN, but OPEN cannot express an execution.
            Some(files) if flags.access().is_some() => {
                let access = flags.access().unwrap_or(OpenAccess::Read);
                let opened = self.open_named(who, files, (number, &handle, &cred), access)?;
                (opened.attr, Some(opened.open))
            }
            _ => (Some(self.judge(who, (&cred, &handle), flags.rights())?), None),
        };
        self.add_open((number, handle), cred, opened, attr.map(|attr| attr.change))
    }

    /// Checks that the caller has the rights; returns the file's attributes.
    pub(super) fn judge(
        &self,
        who: Requester,
        (cred, node): (&Cred<Disk>, &Handle),
        rights: Access,
    ) -> io::Result<Attr<Disk>> {
        let (granted, attr) = self.verb(who, || self.fs.access(cred, node, rights))?;
        if granted.contains(rights) { Ok(attr) } else { Err(Errno::ACCESS) }
    }

    fn add_open(
        &self,
        (number, handle): (u64, Handle),
        cred: Cred<Disk>,
        opened: Option<OpenId>,
        change: Option<u64>,
    ) -> io::Result<Handed> {
        let (unflushed, end) = (AtomicBool::new(false), ListingEnd::default());
        let file = OpenFile { number, handle, cred, opened, unflushed, end };
        let open = self.opens.insert(file).inspect_err(|_| self.close_at_server(opened))?;
        let keeps_pages = self.inodes.open(number, change);
        Ok(Handed { open, keeps_pages })
    }

    fn close_at_server(&self, opened: Option<OpenId>) {
        let (Some(files), Some(opened)) = (self.open_files(), opened) else { return };
        if let Err(status) = files.close(opened) {
            tracing::warn!(%status, "a file could not be closed at the server");
        }
    }

    /// Creates a file and opens it; without O_EXCL an existing file is opened.
    pub(crate) fn create(
        &self,
        who: Requester,
        (dir, bytes): (u64, &[u8]),
        mode: NewMode,
        flags: OpenFlags,
    ) -> io::Result<(KnownNode, Handed)> {
        let (parent, cred) = (self.inodes.handle(dir)?, self.cred(who));
        let (entry, set) = (name(bytes)?, self.new_attributes(dir, mode)?);
        let (change, node, opened) = match self.open_files() {
            Some(files) => {
                let how = if flags.is_exclusive() {
                    Create::Guarded(set)
                } else {
                    Create::Unchecked(set)
                };
                let access = flags.access().unwrap_or(OpenAccess::Read);
                let place = (&parent, entry);
                let made = self.verb(who, || files.open_name(&cred, place, access, Some(&how)))?;
                let (opened, handle) = (made.value.open, made.value.handle);
                let attr = match made.value.attr {
                    Some(attr) => Ok(attr),
                    None => self.verb(who, || self.fs.getattr(&handle)),
                };
                let attr = attr.inspect_err(|_| self.close_at_server(Some(opened)))?;
                (made.change, Node { handle, attr }, Some(opened))
            }
            None => self.create_or_find(who, &cred, (&parent, entry), (&set, flags))?,
        };
        self.note(dir, &change);
        let known = self.introduce(&node, Some((dir, bytes.into())));
        let known = known.inspect_err(|_| self.close_at_server(opened))?;
        let handed =
            self.add_open((known.number, node.handle), cred, opened, Some(node.attr.change));
        // After an error the kernel does not count the lookup.
        let handed = handed.inspect_err(|_| self.inodes.forget(known.number, 1))?;
        Ok((known, handed))
    }

    /// The same without a server: the rights to an existing file are checked here.
    fn create_or_find(
        &self,
        who: Requester,
        cred: &Cred<Disk>,
        (dir, entry): (&Handle, Name<'_>),
        (set, flags): (&SetAttr<Disk>, OpenFlags),
    ) -> io::Result<(Change<Disk>, Node<Disk>, Option<OpenId>)> {
        let how = Create::Guarded(*set);
        match self.verb(who, || self.fs.create(cred, dir, entry, &how)) {
            Ok(made) => Ok((made.change, made.value, None)),
            Err(Errno::EXIST) if !flags.is_exclusive() => {
                let found = self.verb(who, || self.fs.lookup(cred, dir, entry))?;
                self.judge_found(who, cred, &found.node, flags)?;
                let dir = found.dir;
                Ok((Change { before: dir, after: dir }, found.node, None))
            }
            Err(error) => Err(error),
        }
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
        let (handle, cred) = (self.inodes.handle(number)?, self.cred(who));
        self.judge(who, (&cred, &handle), Access::READ)?;
        let (unflushed, end) = (AtomicBool::new(false), ListingEnd::default());
        self.opens.insert(OpenFile { number, handle, cred, opened: None, unflushed, end })
    }

    /// Closes a directory.
    pub(crate) fn releasedir(&self, open: u64) {
        self.opens.remove(open);
    }

    /// Answers the close of a descriptor: sends the written data to the server, so that other
    /// clients see it from then on (close-to-open), and releases the owner's locks. The data goes
    /// first: an unlock sends it, too, but cannot tell the program of a failure.
    pub(crate) fn flush(&self, who: Requester, open: u64, owner: u64) -> io::Result<()> {
        let file = self.opens.get(open)?;
        let committed = self.commit_unflushed(who, &file);
        self.unlock_all(file.number, owner);
        committed
    }

    fn commit_unflushed(&self, who: Requester, file: &OpenFile) -> io::Result<()> {
        if self.open_files().is_none() || !file.unflushed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let committed = self.verb(who, || self.fs.commit(&file.handle));
        committed.map(drop).inspect_err(|_| file.unflushed.store(true, Ordering::Release))
    }

    /// Commits all changes of the file or directory to stable storage.
    pub(crate) fn fsync(&self, who: Requester, number: u64) -> io::Result<()> {
        let node = self.inodes.handle(number)?;
        self.verb(who, || self.fs.commit(&node)).map(|_| ())
    }

    /// Closes a file. `flock_owner` is set if it held locks of flock(2).
    pub(crate) fn release(&self, open: u64, flock_owner: Option<u64>) {
        let Some(file) = self.opens.remove(open) else { return };
        if let Some(owner) = flock_owner {
            self.unlock_all(file.number, owner);
        }
        self.close_at_server(file.opened);
        if self.inodes.release(file.number) == 0 {
            self.remove_hidden(&file.handle);
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
