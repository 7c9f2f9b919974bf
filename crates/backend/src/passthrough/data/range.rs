use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use comity_vfs::{Change, Changed, Cred, Disk, Handle, Result, Seek, Status};
use rustix::fs::{FallocateFlags, SeekFrom, copy_file_range, fallocate, seek};
use rustix::io::{Errno, retry_on_intr};

use super::space::FILE_SIZE_MAX;
use crate::blocking::blocking;
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::attr;
use crate::passthrough::handles::node::Use;
use crate::sys;

impl Passthrough {
    /// See [`comity_vfs::Fs::seek`].
    pub(crate) fn seek(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        what: Seek,
    ) -> Result<u64> {
        let (node, stat) = self.file(node)?;
        self.admit_reader(cred, &node, &stat)?;
        if offset > FILE_SIZE_MAX {
            return Err(Status::NoData);
        }
        let from = match what {
            Seek::Data => SeekFrom::Data(offset),
            Seek::Hole => SeekFrom::Hole(offset),
        };
        // This moves the file position, which is otherwise unused: reads and writes pass their own
        // offset.
        let file = self.data(&node, Use::Read)?;
        match seek(&*file, from) {
            Err(Errno::NXIO) => Err(Status::NoData),
            outcome => outcome.map_err(status),
        }
    }

    /// See [`comity_vfs::Fs::allocate`].
    pub(crate) fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        self.reserve(cred, node, (offset, length), FallocateFlags::empty())
    }

    /// See [`comity_vfs::Fs::deallocate`].
    pub(crate) fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.reserve(cred, node, (offset, length), punch)
    }

    fn reserve(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (offset, length): (u64, u64),
        how: FallocateFlags,
    ) -> Result<Change<Disk>> {
        must_fit(offset, length)?;
        let node = self.node(node)?;
        let writing = self.begin_write(&node);
        let (node, stat) = self.file(&node.handle)?;
        self.admit_writer(cred, &node, &stat)?;
        let file = self.data(&node, Use::Write)?;
        self.identity.caller(cred)?;
        let outcome =
            blocking(|| retry_on_intr(|| fallocate(&*file, how, offset, length))).map_err(status);
        node.barrier.changed_attributes();
        node.barrier.written();
        let before = writing.is_alone().then(|| attr(&node.mount, &stat));
        let change = self.since(&node, before);
        outcome.map(|()| change)
    }

    /// See [`comity_vfs::Fs::copy`].
    pub(crate) fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        self.between(cred, source, target, length, |from, to, rest| {
            copy_now(from, to, rest.min(length))
        })
    }

    /// See [`comity_vfs::Fs::clone_range`].
    pub(crate) fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        let cloned = self.between(cred, source, target, length, |from, to, rest| {
            // To the kernel, a length of 0 means the rest of the file.
            match length <= rest && (length > 0 || rest == 0) {
                true => sys::clone_range(from, to, length).map_err(unclonable),
                false => Err(Status::Inval),
            }
        });
        cloned.map(|cloned| cloned.change)
    }

    /// Transfers bytes from one file to another: the argument of `work` is the number of bytes that
    /// the source has from its offset on.
    fn between<T>(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
        work: impl FnOnce(End<'_>, End<'_>, u64) -> Result<T>,
    ) -> Result<Changed<T, Disk>> {
        must_fit(source.1, length)?;
        must_fit(target.1, length)?;
        let (from, stat) = self.file(source.0)?;
        self.admit_reader(cred, &from, &stat)?;
        let rest = (stat.st_size as u64).saturating_sub(source.1);
        let to = self.node(target.0)?;
        let writing = self.begin_write(&to);
        let (to, stat) = self.file(&to.handle)?;
        self.admit_writer(cred, &to, &stat)?;
        if !Arc::ptr_eq(&from.mount, &to.mount) {
            return Err(Status::XDev);
        }
        let files = (self.data(&from, Use::Read)?, self.data(&to, Use::Write)?);
        self.identity.caller(cred)?;
        let ends = ((files.0.as_fd(), source.1), (files.1.as_fd(), target.1));
        let value = blocking(|| work(ends.0, ends.1, rest));
        to.barrier.changed_attributes();
        to.barrier.written();
        let before = writing.is_alone().then(|| attr(&to.mount, &stat));
        let change = self.since(&to, before);
        Ok(Changed { value: value?, change })
    }
}

type End<'a> = (BorrowedFd<'a>, u64);

/// Shares blocks if the file system can and the range allows it; otherwise the kernel copies.
fn copy_now(source: End<'_>, target: End<'_>, length: u64) -> Result<u64> {
    if length == 0 {
        return Ok(0);
    }
    if sys::clone_range(source, target, length).is_ok() {
        return Ok(length);
    }
    let (mut from, mut to, mut copied) = (source.1, target.1, 0);
    while copied < length {
        let rest = usize::try_from(length - copied).unwrap_or(usize::MAX);
        let step = || copy_file_range(source.0, Some(&mut from), target.0, Some(&mut to), rest);
        match retry_on_intr(step) {
            Ok(0) => break,
            Ok(count) => copied += count as u64,
            Err(_) if copied > 0 => break,
            Err(errno) => return Err(status(errno)),
        }
    }
    Ok(copied)
}

/// File systems report in many ways that files cannot share blocks: some support the request but
/// refuse it for a mount or a pair of files.
fn unclonable(errno: Errno) -> Status {
    match errno {
        Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS => Status::NotSupp,
        errno => status(errno),
    }
}

fn must_fit(offset: u64, length: u64) -> Result<()> {
    match offset.checked_add(length) {
        Some(end) if end <= FILE_SIZE_MAX => Ok(()),
        _ => Err(Status::FBig),
    }
}
