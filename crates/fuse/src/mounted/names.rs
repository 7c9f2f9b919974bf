//! Requests about names: LOOKUP, MKDIR, MKNOD, SYMLINK, LINK, UNLINK, RMDIR, RENAME, READLINK.

use std::time::Duration;

use comity_vfs::{
    AclKind, Change, Changed, Create, Device, Disk, Handle, Made, Mode, Name, Node, SetAttr,
    Special, Status, Target,
};
use rustix::fs::FileType;
use rustix::io::{self, Errno};

use super::{KnownNode, Mounted};
use crate::callers::Requester;
use crate::errno::errno;

/// The answer to LOOKUP.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Looked {
    /// The object of the name.
    Found(KnownNode),
    /// The name is missing; the kernel may cache that for this time.
    Missing(Duration),
}

impl Looked {
    /// The same, without caching of the name.
    const fn unkept(self) -> Self {
        match self {
            Self::Found(known) => Self::Found(known.unkept()),
            Self::Missing(_) => Self::Missing(Duration::ZERO),
        }
    }
}

/// The mode of a new object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewMode {
    /// Permission bits, and for MKNOD the file type in the upper bits.
    pub(crate) mode: u32,
    /// The umask of the process, unless the kernel has applied it.
    pub(crate) umask: u32,
}

/// Makes attributes with a mode alone.
fn with_mode(bits: u32) -> SetAttr<Disk> {
    SetAttr { mode: Some(Mode::new(bits)), ..SetAttr::default() }
}

pub(super) fn name(bytes: &[u8]) -> io::Result<Name<'_>> {
    Name::new(bytes).map_err(errno)
}

/// Decodes a device number of `mknod(2)` (`new_encode_dev` in Linux).
const fn device(number: u32) -> Device {
    Device { major: (number & 0xf_ff00) >> 8, minor: (number & 0xff) | ((number >> 12) & 0xf_ff00) }
}

impl Mounted {
    pub(crate) fn lookup(&self, who: Requester, dir: u64, bytes: &[u8]) -> io::Result<Looked> {
        let handle = self.inodes.handle(dir)?;
        let (cred, entry) = (self.cred(who), name(bytes)?);
        let looked = match self.verb(who, || self.fs.lookup(&cred, &handle, entry)) {
            Ok(found) => self.introduce(&found.node, Some((dir, bytes.into()))).map(Looked::Found),
            Err(Errno::NOENT) => Ok(Looked::Missing(self.lower.keep_missing(&handle))),
            Err(error) => Err(error),
        };
        if self.is_granted(&handle) { looked.map(Looked::unkept) } else { looked }
    }

    pub(crate) fn mkdir(
        &self,
        who: Requester,
        (dir, bytes): (u64, &[u8]),
        mode: NewMode,
    ) -> io::Result<KnownNode> {
        let (cred, set) = (self.cred(who), self.new_attributes(dir, mode)?);
        self.make(who, (dir, bytes), |dir, name| self.fs.mkdir(&cred, dir, name, &set))
    }

    /// The initial attributes of a new object in a directory. A umask is ignored if the directory
    /// has a default ACL (acl(5)).
    pub(super) fn new_attributes(&self, dir: u64, mode: NewMode) -> io::Result<SetAttr<Disk>> {
        let mask = match mode.umask {
            _ if !self.kernel_judges => 0,
            0 => 0,
            umask => match self.fs.getacl(&self.inodes.handle(dir)?, AclKind::Default) {
                Ok(Some(_)) => 0,
                _ => umask,
            },
        };
        Ok(with_mode(mode.mode & !mask))
    }

    pub(crate) fn symlink(
        &self,
        who: Requester,
        (dir, bytes): (u64, &[u8]),
        target: &[u8],
    ) -> io::Result<KnownNode> {
        let cred = self.cred(who);
        self.make(who, (dir, bytes), |dir, name| {
            self.fs.symlink(&cred, dir, name, target, &with_mode(0o777))
        })
    }

    pub(crate) fn mknod(
        &self,
        who: Requester,
        (dir, bytes): (u64, &[u8]),
        mode: NewMode,
        device_number: u32,
    ) -> io::Result<KnownNode> {
        let (cred, set) = (self.cred(who), self.new_attributes(dir, mode)?);
        let special = match FileType::from_raw_mode(mode.mode) {
            FileType::RegularFile => None,
            FileType::Fifo => Some(Special::Fifo),
            FileType::Socket => Some(Special::Socket),
            FileType::CharacterDevice => Some(Special::Character(device(device_number))),
            FileType::BlockDevice => Some(Special::Block(device(device_number))),
            _ => return Err(Errno::INVAL),
        };
        self.make(who, (dir, bytes), |dir, name| match special {
            Some(special) => self.fs.mknod(&cred, dir, name, special, &set),
            None => self.fs.create(&cred, dir, name, &Create::Guarded(set)),
        })
    }

    /// Makes an object by a verb, and counts a lookup of it.
    fn make(
        &self,
        who: Requester,
        (dir, bytes): (u64, &[u8]),
        verb: impl Fn(&Handle, Name<'_>) -> Result<Made<Disk>, Status>,
    ) -> io::Result<KnownNode> {
        let (handle, entry) = (self.inodes.handle(dir)?, name(bytes)?);
        let made = self.verb(who, || verb(&handle, entry))?;
        self.note(dir, &made.change);
        self.introduce(&made.value, Some((dir, bytes.into())))
    }

    pub(crate) fn link(
        &self,
        who: Requester,
        number: u64,
        (dir, bytes): (u64, &[u8]),
    ) -> io::Result<KnownNode> {
        let (node, handle) = (self.inodes.handle(number)?, self.inodes.handle(dir)?);
        let (cred, entry) = (self.cred(who), name(bytes)?);
        let Changed { value: attr, change } =
            self.verb(who, || self.fs.link(&cred, &node, &handle, entry))?;
        self.note(dir, &change);
        // The change of the linked file itself is unknown.
        self.inodes.changed(number, None, None);
        self.introduce(&Node { handle: node, attr }, Some((dir, bytes.into())))
    }

    pub(crate) fn unlink(&self, who: Requester, dir: u64, bytes: &[u8]) -> io::Result<()> {
        let (handle, entry) = (self.inodes.handle(dir)?, name(bytes)?);
        let cred = self.cred(who);
        if self.hide_removed(who, &cred, (&handle, entry))? {
            return Ok(());
        }
        let change = self.verb(who, || self.fs.remove(&cred, &handle, entry))?;
        self.note(dir, &change);
        Ok(())
    }

    pub(crate) fn rmdir(&self, who: Requester, dir: u64, bytes: &[u8]) -> io::Result<()> {
        let (handle, entry) = (self.inodes.handle(dir)?, name(bytes)?);
        let cred = self.cred(who);
        let change = self.verb(who, || self.fs.rmdir(&cred, &handle, entry))?;
        self.note(dir, &change);
        Ok(())
    }

    /// Renames. Any `flags` of renameat2(2) fail with EINVAL, because an `Fs` cannot guarantee
    /// them.
    pub(crate) fn rename(
        &self,
        who: Requester,
        source: (u64, &[u8]),
        target: (u64, &[u8]),
        flags: u32,
    ) -> io::Result<()> {
        if flags != 0 {
            return Err(Errno::INVAL);
        }
        let from = (self.inodes.handle(source.0)?, name(source.1)?);
        let to = (self.inodes.handle(target.0)?, name(target.1)?);
        let cred = self.cred(who);
        self.keep_replaced(who, &cred, (&from.0, from.1), (&to.0, to.1))?;
        let renamed = self.verb(who, || self.fs.rename(&cred, (&from.0, from.1), (&to.0, to.1)))?;
        self.note_renamed([source.0, target.0], &renamed);
        Ok(())
    }

    fn note_renamed(&self, [source, target]: [u64; 2], (from, to): &(Change<Disk>, Change<Disk>)) {
        self.note(source, from);
        if target != source {
            self.note(target, to);
        }
    }

    pub(crate) fn readlink(&self, who: Requester, number: u64) -> io::Result<Target> {
        let (node, cred) = (self.inodes.handle(number)?, self.cred(who));
        let (target, _) = self.verb(who, || self.fs.readlink(&cred, &node))?;
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_taken_apart_as_the_kernel_puts_them_together() {
        for (major, minor) in [(1, 3), (8, 0x12345), (0xfff, 0xf_ffff)] {
            let number = (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
            assert_eq!(device(number), Device { major, minor });
        }
    }
}
