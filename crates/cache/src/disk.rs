//! A folder of this machine as a [`Medium`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quick_cache::sync::Cache;
use rustix::fs::{FlockOperation, flock};

use crate::limits::DESCRIPTORS_MAX;
use crate::medium::Medium;

/// The unit of `st_blocks` in stat(2).
const SECTOR_BYTES: u64 = 512;

/// A folder that one process uses at a time, and that other users cannot read.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    files: Cache<String, Arc<File>>,
    /// The lock that excludes other processes.
    _lock: File,
}

impl Disk {
    /// Opens a folder; creates it if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if another process uses it; those of the disk.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let lock = options().write(true).create(true).open(folder.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let files = Cache::new(DESCRIPTORS_MAX);
        Ok(Self { folder: folder.to_owned(), files, _lock: lock })
    }

    fn existing(&self, path: &str) -> io::Result<Option<Arc<File>>> {
        if let Some(file) = self.files.get(path) {
            return Ok(Some(file));
        }
        match options().read(true).write(true).open(self.folder.join(path)) {
            Ok(file) => Ok(Some(self.keep(path, file))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn made(&self, path: &str) -> io::Result<Arc<File>> {
        if let Some(file) = self.existing(path)? {
            return Ok(file);
        }
        let whole = self.folder.join(path);
        if let Some(above) = whole.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        let file = options().read(true).write(true).create(true).open(whole)?;
        Ok(self.keep(path, file))
    }

    fn keep(&self, path: &str, file: File) -> Arc<File> {
        let file = Arc::new(file);
        self.files.insert(path.to_owned(), Arc::clone(&file));
        file
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

impl Medium for Disk {
    fn read(&self, path: &str, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(file) = self.existing(path)? else { return Ok(0) };
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.made(path)?.write_all_at(bytes, offset)
    }

    fn truncate(&self, path: &str, length: u64) -> io::Result<()> {
        match self.existing(path)? {
            Some(file) if file.metadata()?.len() > length => file.set_len(length),
            _ => Ok(()),
        }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.remove(path);
        match fs::remove_file(self.folder.join(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync(&self, path: &str) -> io::Result<()> {
        let Some(file) = self.existing(path)? else { return Ok(()) };
        file.sync_all()?;
        match self.folder.join(path).parent() {
            Some(above) => File::open(above)?.sync_all(),
            None => Ok(()),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.folder.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
        entries.map(name).filter_map(Result::transpose).collect()
    }

    fn used(&self, path: &str) -> io::Result<u64> {
        match fs::metadata(self.folder.join(path)) {
            Ok(attr) => Ok(attr.blocks() * SECTOR_BYTES),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn length(&self, path: &str) -> io::Result<u64> {
        self.existing(path)?.map_or(Ok(0), |file| Ok(file.metadata()?.len()))
    }

    fn free(&self) -> io::Result<u64> {
        let space = rustix::fs::statvfs(&self.folder)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_contain_what_was_written_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(&folder.path().join("cache")).unwrap();
        let mut bytes = [1; 4];
        assert_eq!(disk.read("a/b", 0, &mut bytes).unwrap(), 0);
        disk.write("a/b", 2, b"xy").unwrap();
        disk.sync("a/b").unwrap();
        assert_eq!(disk.read("a/b", 0, &mut bytes).unwrap(), 4);
        assert_eq!(&bytes, b"\0\0xy");
        assert_eq!(disk.list("a").unwrap(), ["b"]);
        assert!(disk.list("c").unwrap().is_empty());
        disk.truncate("a/b", 3).unwrap();
        disk.truncate("a/b", u64::MAX).unwrap();
        assert_eq!(disk.read("a/b", 0, &mut bytes).unwrap(), 3);
        disk.remove("a/b").unwrap();
        disk.remove("a/b").unwrap();
        assert_eq!(disk.read("a/b", 0, &mut bytes).unwrap(), 0);
        assert!(disk.free().unwrap() > 0);
    }

    #[test]
    fn a_folder_that_is_in_use_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = Disk::open(folder.path()).unwrap();
        assert_eq!(Disk::open(folder.path()).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(first);
        Disk::open(folder.path()).unwrap();
    }
}
