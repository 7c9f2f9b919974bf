use std::collections::BTreeMap;
use std::io::{Error, Result as IoResult};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use comity_backend::range_lock;
use rustix::fs::{self, AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};
use slab::Slab;

use super::{counters, mount};
use crate::suite::{
    Access, Entry, FileId, FileKind, Files, LockKind, Metadata, MountRecord, Range, Target,
    TargetKind, TargetRecord, Wait,
};

/// A directory of this machine, on whatever file system it is.
#[derive(Debug)]
pub struct DirectoryTarget {
    name: String,
    path: PathBuf,
    /// The inode of the top. Its device may change when a hook unmounts and mounts again.
    inode: u64,
    mount: Option<MountRecord>,
    calls_at: Option<SocketAddr>,
}

impl DirectoryTarget {
    /// Opens the target. Only workers keep it open, so that a hook may unmount it between rounds.
    ///
    /// # Errors
    /// There is no such directory, or it may not be searched.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let failed = || match name.split_once(":/") {
            Some((host, export)) => {
                format!("cannot open directory {name}; a server is named nfs://{host}/{export}")
            }
            None => {
                format!("cannot open directory {name}: name one that you may use, or nfs://...")
            }
        };
        let path = path.canonicalize().with_context(failed)?;
        let inode = fs::fstat(open_top(&path).with_context(failed)?).with_context(failed)?.st_ino;
        let mount = mount::of(&path);
        Ok(Self { name, path, inode, mount, calls_at: None })
    }

    /// Counts calls at the server with this metrics page, if there is one, else at the kernel's
    /// client.
    #[must_use]
    pub fn counting_at(self, calls_at: Option<SocketAddr>) -> Self {
        Self { calls_at, ..self }
    }

    fn is_nfs(&self) -> bool {
        self.mount.as_ref().is_some_and(|mount| mount.filesystem.starts_with("nfs"))
    }
}

impl Target for DirectoryTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> TargetKind {
        TargetKind::Directory
    }

    fn record(&self) -> TargetRecord {
        let filesystem = self.mount.as_ref().map_or("", |mount| mount.filesystem.as_str());
        TargetRecord {
            name: self.name.clone(),
            kind: TargetKind::Directory,
            server: None,
            mount: self.mount.clone(),
            durability: mount::durability(filesystem).to_owned(),
            sync_seconds: None,
            cache_reset: String::new(),
            settings: BTreeMap::new(),
        }
    }

    fn files(&self) -> Result<Box<dyn Files>> {
        Ok(Box::new(DirectoryFiles { top: open_top(&self.path)?, open: Slab::new() }))
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn calls(&self) -> Result<Option<BTreeMap<String, u64>>> {
        if let Some(page) = self.calls_at {
            return counters::of_comity(page).map(Some);
        }
        match &self.mount {
            Some(mount) if self.is_nfs() => counters::of_mount(&mount.point).map(Some),
            _ => Ok(None),
        }
    }

    fn check(&self) -> Result<()> {
        let found = fs::stat(&self.path);
        let found = found.with_context(|| format!("{} is gone: was it unmounted?", self.name))?;
        let now = mount::of(&self.path);
        let place = |mount: &Option<MountRecord>| {
            mount.clone().map(|mount| (mount.source, mount.point, mount.filesystem))
        };
        ensure!(
            found.st_ino == self.inode && place(&now) == place(&self.mount),
            "{} is no longer the directory it was: was it unmounted?",
            self.name
        );
        Ok(())
    }
}

fn open_top(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    fs::open(path, flags, Mode::empty())
}

/// One worker's open files.
struct DirectoryFiles {
    top: OwnedFd,
    open: Slab<OwnedFd>,
}

impl DirectoryFiles {
    fn open_at(&mut self, path: &str, flags: OFlags) -> IoResult<FileId> {
        let mode = Mode::from_raw_mode(0o644);
        let file = fs::openat(&self.top, path, flags | OFlags::CLOEXEC, mode)?;
        Ok(FileId(self.open.insert(file) as u64))
    }

    fn file(&self, file: FileId) -> IoResult<&OwnedFd> {
        self.open.get(file.0 as usize).ok_or_else(bad_file)
    }
}

impl Files for DirectoryFiles {
    fn make_directory(&mut self, path: &str) -> IoResult<()> {
        Ok(fs::mkdirat(&self.top, path, Mode::from_raw_mode(0o755))?)
    }

    fn remove_directory(&mut self, path: &str) -> IoResult<()> {
        Ok(fs::unlinkat(&self.top, path, AtFlags::REMOVEDIR)?)
    }

    fn create(&mut self, path: &str) -> IoResult<FileId> {
        self.open_at(path, OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR)
    }

    fn open(&mut self, path: &str, access: Access) -> IoResult<FileId> {
        let flags = if access == Access::Read { OFlags::RDONLY } else { OFlags::RDWR };
        self.open_at(path, flags | OFlags::NOFOLLOW)
    }

    fn close(&mut self, file: FileId) -> IoResult<()> {
        let file = self.open.try_remove(file.0 as usize).ok_or_else(bad_file)?;
        // `close` reports a late failure of writes (above all on NFS), which dropping would hide.
        close(file)
    }

    fn read(&mut self, file: FileId, offset: u64, buffer: &mut [u8]) -> IoResult<usize> {
        Ok(rustix::io::pread(self.file(file)?, buffer, offset)?)
    }

    fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> IoResult<usize> {
        Ok(rustix::io::pwrite(self.file(file)?, data, offset)?)
    }

    fn sync(&mut self, file: FileId) -> IoResult<()> {
        Ok(fs::fsync(self.file(file)?)?)
    }

    fn attributes(&mut self, file: FileId) -> IoResult<Metadata> {
        Ok(metadata(&fs::fstat(self.file(file)?)?))
    }

    fn lookup(&mut self, path: &str) -> IoResult<Metadata> {
        Ok(metadata(&fs::statat(&self.top, path, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn list(&mut self, path: &str, attributes: bool) -> IoResult<Vec<Entry>> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = fs::openat(&self.top, path, flags, Mode::empty())?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let metadata = match attributes {
                true => Some(metadata(&fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?)),
                false => None,
            };
            entries.push(Entry { name: name.to_string_lossy().into_owned(), metadata });
        }
        Ok(entries)
    }

    fn make_link(&mut self, path: &str, to: &str) -> IoResult<()> {
        Ok(fs::symlinkat(to, &self.top, path)?)
    }

    fn read_link(&mut self, path: &str) -> IoResult<String> {
        let to = fs::readlinkat(&self.top, path, Vec::new())?;
        Ok(to.to_string_lossy().into_owned())
    }

    fn remove(&mut self, path: &str) -> IoResult<()> {
        Ok(fs::unlinkat(&self.top, path, AtFlags::empty())?)
    }

    fn set_owner(&mut self, path: &str, user: u32, group: u32) -> IoResult<()> {
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        Ok(fs::chownat(&self.top, path, user, group, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn lock(&mut self, file: FileId, kind: LockKind, range: Range, wait: Wait) -> IoResult<()> {
        let kind = match kind {
            LockKind::Shared => range_lock::Kind::Shared,
            LockKind::Exclusive => range_lock::Kind::Exclusive,
            LockKind::Unlock => range_lock::Kind::Unlock,
        };
        let stretch = (range.offset, range.length);
        Ok(range_lock::lock(self.file(file)?.as_fd(), kind, stretch, wait == Wait::Yes)?)
    }
}

/// Closes a file and returns the error of the file system.
fn close(file: OwnedFd) -> IoResult<()> {
    comity_backend::close(file).map_err(Error::from)
}

fn bad_file() -> Error {
    rustix::io::Errno::BADF.into()
}

fn metadata(stat: &Stat) -> Metadata {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Other,
    };
    Metadata { kind, size: stat.st_size as u64, user: stat.st_uid }
}
