use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use comity_vfs::{
    Access, Attr, Change, Create, Cred, Data, Disk, Fs, Gid, Handle, Listed, Mode, Name, Node,
    ReadInto, Result, SetAttr, SetTime, Status, Time, Uid,
};

/// A file system, an empty directory in it, and the owner of the directory.
pub struct Fixture<'a> {
    /// The file system.
    pub fs: &'a dyn Fs,
    /// The case's own directory.
    pub top: Handle,
    /// The owner of the directory; root, if the file system distinguishes callers.
    pub owner: Cred<Disk>,
}

/// Attributes that set only a mode.
pub(super) fn mode(bits: u32) -> SetAttr<Disk> {
    SetAttr { mode: Some(Mode::new(bits)), ..SetAttr::default() }
}

/// Attributes that set only a length.
pub(super) fn size(size: u64) -> SetAttr<Disk> {
    SetAttr { size: Some(size), ..SetAttr::default() }
}

/// Attributes that set both times.
pub(super) fn times(atime: Time, mtime: Time) -> SetAttr<Disk> {
    let (atime, mtime) = (Some(SetTime::To(atime)), Some(SetTime::To(mtime)));
    SetAttr { atime, mtime, ..SetAttr::default() }
}

/// Attributes that set owner and group.
pub(super) fn ids(uid: Option<u32>, gid: Option<u32>) -> SetAttr<Disk> {
    SetAttr { uid: uid.map(Uid::new), gid: gid.map(Gid::new), ..SetAttr::default() }
}

/// Returns a caller with supplementary groups. The cases use ids above those of real users and
/// below those of containers.
pub(super) fn caller(uid: u32, gid: u32, groups: &[u32]) -> Cred<Disk> {
    Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(groups.iter().map(|gid| Gid::new(*gid)))
}

pub(super) const ALICE: u32 = 61_001;
pub(super) const BOB: u32 = 61_002;
pub(super) const STAFF: u32 = 62_001;
pub(super) const GUESTS: u32 = 62_002;

pub(super) fn alice() -> Cred<Disk> {
    caller(ALICE, STAFF, &[])
}

pub(super) fn bob() -> Cred<Disk> {
    caller(BOB, GUESTS, &[])
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) name: Vec<u8>,
    pub(super) fileid: u64,
    pub(super) cookie: u64,
    pub(super) node: Option<Node<Disk>>,
}

impl<'a> Fixture<'a> {
    /// Makes the directory of one case. If a directory of that name remains from an earlier run, a
    /// number is added to the name.
    ///
    /// # Errors
    /// [`super::Failure`] if it cannot be made.
    pub fn new(
        fs: &'a dyn Fs,
        owner: Cred<Disk>,
        case: &str,
    ) -> std::result::Result<Self, super::Failure> {
        for number in 0..u32::MAX {
            let name = format!("{}.{number}", case.replace('/', "."));
            match fs.mkdir(&owner, &fs.root(), Name::new(name.as_bytes())?, &mode(0o755)) {
                Err(Status::Exist) => {}
                made => return Ok(Self { fs, top: made?.value.handle, owner }),
            }
        }
        Err(Status::Exist.into())
    }

    pub(super) fn file(&self, name: &str) -> Result<Handle> {
        self.file_in(&self.top, name)
    }

    pub(super) fn file_in(&self, dir: &Handle, name: &str) -> Result<Handle> {
        self.file_as(&self.owner, dir, name, 0o644).map(|node| node.handle)
    }

    pub(super) fn file_as(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: &str,
        bits: u32,
    ) -> Result<Node<Disk>> {
        let how = Create::Guarded(mode(bits));
        self.fs.create(cred, dir, self::name(name)?, &how).map(|made| made.value)
    }

    /// Makes a file that contains `data`.
    pub(super) fn filled(&self, name: &str, data: &[u8]) -> Result<Handle> {
        let file = self.file(name)?;
        self.write(&file, 0, data)?;
        Ok(file)
    }

    pub(super) fn dir(&self, name: &str) -> Result<Handle> {
        self.dir_in(&self.top, name)
    }

    pub(super) fn dir_in(&self, dir: &Handle, name: &str) -> Result<Handle> {
        self.dir_as(&self.owner, dir, name, 0o755).map(|node| node.handle)
    }

    pub(super) fn dir_as(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: &str,
        bits: u32,
    ) -> Result<Node<Disk>> {
        self.fs.mkdir(cred, dir, self::name(name)?, &mode(bits)).map(|made| made.value)
    }

    pub(super) fn symlink(&self, name: &str, target: &[u8]) -> Result<Handle> {
        let made =
            self.fs.symlink(&self.owner, &self.top, self::name(name)?, target, &mode(0o777))?;
        Ok(made.value.handle)
    }

    pub(super) fn lookup(&self, name: &str) -> Result<Node<Disk>> {
        self.lookup_in(&self.top, name)
    }

    pub(super) fn lookup_in(&self, dir: &Handle, name: &str) -> Result<Node<Disk>> {
        self.fs.lookup(&self.owner, dir, self::name(name)?).map(|entry| entry.node)
    }

    pub(super) fn attr(&self, node: &Handle) -> Result<Attr<Disk>> {
        self.fs.getattr(node)
    }

    pub(super) fn set(&self, node: &Handle, set: &SetAttr<Disk>) -> Result<Change<Disk>> {
        self.fs.setattr(&self.owner, node, set, None)
    }

    pub(super) fn remove(&self, name: &str) -> Result<Change<Disk>> {
        self.fs.remove(&self.owner, &self.top, self::name(name)?)
    }

    pub(super) fn rmdir(&self, name: &str) -> Result<Change<Disk>> {
        self.fs.rmdir(&self.owner, &self.top, self::name(name)?)
    }

    pub(super) fn rename(&self, old: &str, new: &str) -> Result<(Change<Disk>, Change<Disk>)> {
        self.rename_between((&self.top, old), (&self.top, new))
    }

    pub(super) fn rename_between(
        &self,
        (source, old): (&Handle, &str),
        (target, new): (&Handle, &str),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        self.fs.rename(&self.owner, (source, name(old)?), (target, name(new)?))
    }

    pub(super) fn link(&self, node: &Handle, name: &str) -> Result<Attr<Disk>> {
        self.fs.link(&self.owner, node, &self.top, self::name(name)?).map(|linked| linked.value)
    }

    /// Writes all of `data`.
    pub(super) fn write(&self, file: &Handle, offset: u64, data: &[u8]) -> Result<()> {
        let mut written = 0;
        while written < data.len() {
            let rest = data.get(written..).unwrap_or_default();
            let at = offset + written as u64;
            match self.fs.write(&self.owner, file, at, rest)?.value {
                0 => return Err(Status::Io),
                count => written += count as usize,
            }
        }
        Ok(())
    }

    /// Reads once; returns the bytes, and whether the end of the file was reached.
    pub(super) fn read(&self, file: &Handle, offset: u64, count: u32) -> Result<(Vec<u8>, bool)> {
        self.read_as(&self.owner, file, offset, count)
    }

    pub(super) fn read_as(
        &self,
        cred: &Cred<Disk>,
        file: &Handle,
        offset: u64,
        count: u32,
    ) -> Result<(Vec<u8>, bool)> {
        self.read_how(cred, file, (offset, count), false)
    }

    /// Reads once for a caller that has the file open.
    pub(super) fn read_opened(
        &self,
        file: &Handle,
        offset: u64,
        count: u32,
    ) -> Result<(Vec<u8>, bool)> {
        self.read_how(&bob(), file, (offset, count), true)
    }

    fn read_how(
        &self,
        cred: &Cred<Disk>,
        file: &Handle,
        (offset, count): (u64, u32),
        opened: bool,
    ) -> Result<(Vec<u8>, bool)> {
        let mut bytes = b"kept".to_vec();
        let mut into = ReadInto { opened, ..ReadInto::new(&mut bytes) };
        let read = self.fs.read(cred, file, offset, count, &mut into)?;
        let length = data(&read.data, &mut bytes)?;
        let kept = bytes.len() == 4 + length as usize && bytes.starts_with(b"kept");
        if kept { Ok((bytes.split_off(4), read.eof)) } else { Err(Status::ServerFault) }
    }

    pub(super) fn may(&self, cred: &Cred<Disk>, node: &Handle, wanted: Access) -> Result<bool> {
        self.fs.access(cred, node, wanted).map(|(granted, _)| granted == wanted)
    }

    /// Up to `count` entries after `cookie`.
    pub(super) fn list(
        &self,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        count: usize,
    ) -> Result<Vec<Shown>> {
        let mut shown = Vec::new();
        self.fs.readdir(&self.owner, dir, cookie, wanted, &mut |entry| {
            let name = entry.name.bytes().to_vec();
            let (fileid, cookie, node) = (entry.fileid, entry.cookie, entry.node);
            shown.push(Shown { name, fileid, cookie, node });
            if shown.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(shown)
    }

    /// All names of a directory, sorted, listed in steps of `count`.
    pub(super) fn names(&self, dir: &Handle, count: usize) -> Result<Vec<Vec<u8>>> {
        let (mut names, mut cookie) = (Vec::new(), 0);
        loop {
            let shown = self.list(dir, cookie, Listed::Names, count)?;
            let Some(last) = shown.last() else { break };
            cookie = last.cookie;
            names.extend(shown.into_iter().map(|entry| entry.name));
        }
        names.sort();
        Ok(names)
    }
}

pub(super) fn name(name: &str) -> Result<Name<'_>> {
    Name::new(name.as_bytes())
}

/// Waits until the clock of every file system has moved on: the coarsest of Linux ticks at 100 Hz.
pub(super) fn tick() {
    std::thread::sleep(std::time::Duration::from_millis(15));
}

/// Copies the data of a read into `bytes`; returns their total length.
fn data(data: &Data, bytes: &mut Vec<u8>) -> Result<u32> {
    if let Data::File { file, offset, length } = data {
        let start = bytes.len();
        bytes.resize(start + *length as usize, 0);
        let place = bytes.get_mut(start..).unwrap_or_default();
        file.read_exact_at(place, *offset).map_err(|_| Status::Io)?;
    }
    Ok(data.length())
}
