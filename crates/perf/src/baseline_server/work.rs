//! Makes the one system call of each request.

use std::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};
use comity_backend::range_lock;
use comity_bench::fixture_tree::{FixtureTree, SMALL_FILES, WRITTEN_FILES};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::server::Replies;
use super::wire::{REPLY_BYTES, Request, Verb};

/// All open files and directories that a request may name.
pub(super) struct Work {
    root: OwnedFd,
    directory: OwnedFd,
    small: Vec<OwnedFd>,
    read: File,
    written: Vec<File>,
    /// Small files that were opened.
    opened: Vec<Option<OwnedFd>>,
    listed: Option<(Vec<u8>, OwnedFd)>,
    entries: Box<[std::mem::MaybeUninit<u8>]>,
}

/// Bytes of one directory entry with a name of seven characters, for reading exactly a page.
const ENTRY_BYTES: usize = 32;
const ENTRIES_MAX: usize = 4096;
/// Room for a name and a terminating zero.
const NAME_ROOM: usize = 68;

impl Work {
    pub(super) fn open(layout: &FixtureTree) -> Result<Self> {
        let path = OFlags::PATH | OFlags::CLOEXEC;
        let open = |path_: &Path, flags| {
            rustix::fs::open(path_, flags, Mode::empty())
                .with_context(|| path_.display().to_string())
        };
        let small =
            (0..SMALL_FILES).map(|n| open(&layout.small().join(FixtureTree::file(n)), path));
        let written = (0..WRITTEN_FILES).map(|number| {
            File::options().write(true).open(layout.root().join(FixtureTree::written_file(number)))
        });
        Ok(Self {
            root: open(layout.root(), path)?,
            directory: open(&layout.small(), path)?,
            small: small.collect::<Result<_>>()?,
            read: File::open(layout.root().join(FixtureTree::read_file()))?,
            written: written.collect::<std::io::Result<_>>()?,
            opened: (0..SMALL_FILES).map(|_| None).collect(),
            listed: None,
            entries: vec![std::mem::MaybeUninit::uninit(); ENTRIES_MAX * ENTRY_BYTES].into(),
        })
    }

    /// Performs a request and appends the data after the reply's fixed part; returns the number
    /// for that part.
    pub(super) fn perform(
        &mut self,
        request: &Request<'_>,
        data: &[u8],
        replies: &mut Replies,
    ) -> Result<u64, Errno> {
        let file = request.file as usize;
        match request.verb {
            Verb::Null => Ok(0),
            Verb::Stat => Ok(rustix::fs::fstat(&self.small[file % SMALL_FILES])?.st_ino),
            Verb::Find => self.find(request.name),
            Verb::Read => read(&self.read, request, replies),
            Verb::Write => write(&self.written[file % WRITTEN_FILES], request, data),
            Verb::WriteSync => {
                let file = &self.written[file % WRITTEN_FILES];
                let written = write(file, request, data)?;
                rustix::fs::fdatasync(file)?;
                Ok(written)
            }
            Verb::Create => self.create(request.name),
            Verb::List => self.list(request, replies, false),
            Verb::ListHandles => self.list(request, replies, true),
            Verb::Reach => self.reach(request.name),
            Verb::Open => {
                self.opened[file % SMALL_FILES] = Some(self.open_small(request.name)?);
                Ok(0)
            }
            Verb::Close => {
                self.opened[file % SMALL_FILES].take().ok_or(Errno::BADF)?;
                Ok(0)
            }
            Verb::Lock => self.lock(request, range_lock::Kind::Exclusive),
            Verb::Unlock => self.lock(request, range_lock::Kind::Unlock),
        }
    }

    fn reach(&self, path: &[u8]) -> Result<u64, Errno> {
        let mut room = [0; NAME_ROOM];
        let path = terminated(path, &mut room)?;
        Ok(rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW)?.st_ino)
    }

    /// The object's attributes, and its handle.
    fn find(&self, name: &[u8]) -> Result<u64, Errno> {
        let mut room = [0; NAME_ROOM];
        let name = terminated(name, &mut room)?;
        let stat = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        comity_backend::kernel_handle_bytes(self.directory.as_fd(), name)?;
        Ok(stat.st_ino)
    }

    fn open_small(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let mut room = [0; NAME_ROOM];
        let name = terminated(name, &mut room)?;
        rustix::fs::openat(&self.directory, name, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
    }

    /// Locks or unlocks a byte; a locked file stays open.
    fn lock(&mut self, request: &Request<'_>, kind: range_lock::Kind) -> Result<u64, Errno> {
        let file = request.file as usize % SMALL_FILES;
        if self.opened[file].is_none() {
            self.opened[file] = Some(self.open_small(request.name)?);
        }
        let file = self.opened[file].as_ref().ok_or(Errno::BADF)?;
        range_lock::lock(file.as_fd(), kind, (0, 1), false).map(|()| 0)
    }

    fn create(&self, name: &[u8]) -> Result<u64, Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.root, name, flags, Mode::from_raw_mode(0o644)).map(|_| 0)
    }

    fn list(
        &mut self,
        request: &Request<'_>,
        replies: &mut Replies,
        handles: bool,
    ) -> Result<u64, Errno> {
        let directory = opened(&self.root, &mut self.listed, request.name)?;
        rustix::fs::seek(directory, SeekFrom::Start(request.offset))?;
        let count = (request.count as usize).min(ENTRIES_MAX);
        let mut entries = RawDir::new(directory, &mut self.entries[..count * ENTRY_BYTES]);
        for _ in 0..count {
            let Some(entry) = entries.next() else { break };
            let entry = entry?;
            let attributes =
                rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            if handles {
                comity_backend::kernel_handle_bytes(directory.as_fd(), entry.file_name())?;
            }
            let place = replies.room(REPLY_BYTES);
            place[..8].copy_from_slice(&attributes.st_ino.to_be_bytes());
            place[8..16].copy_from_slice(&entry.next_entry_cookie().to_be_bytes());
        }
        Ok(0)
    }
}

/// A name with a terminating zero, for the kernel.
fn terminated<'a>(name: &[u8], room: &'a mut [u8; NAME_ROOM]) -> Result<&'a CStr, Errno> {
    room.get_mut(..name.len()).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(name);
    CStr::from_bytes_until_nul(room).map_err(|_| Errno::NAMETOOLONG)
}

/// The directory with this name; the one that was listed last stays open.
fn opened<'a>(
    root: &OwnedFd,
    listed: &'a mut Option<(Vec<u8>, OwnedFd)>,
    name: &[u8],
) -> Result<&'a OwnedFd, Errno> {
    if listed.as_ref().is_none_or(|(known, _)| known != name) {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(root.as_fd(), name, flags, Mode::empty())?;
        *listed = Some((name.to_vec(), directory));
    }
    listed.as_ref().map(|(_, directory)| directory).ok_or(Errno::NOENT)
}

fn read(file: &File, request: &Request<'_>, replies: &mut Replies) -> Result<u64, Errno> {
    let count = request.count as usize;
    let got = rustix::io::pread(file, &mut replies.room(count)[..], request.offset)?;
    replies.shrink(count - got);
    Ok(got as u64)
}

fn write(file: &File, request: &Request<'_>, data: &[u8]) -> Result<u64, Errno> {
    let written = file.write_at(data, request.offset);
    written.map(|bytes| bytes as u64).map_err(|_| Errno::IO)
}
