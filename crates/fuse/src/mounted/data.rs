//! Requests about data: READ, WRITE, FALLOCATE, LSEEK, COPY_FILE_RANGE.

use std::sync::atomic::Ordering;

use comity_vfs::{Cred, Disk, Handle, ReadInto, Seek, Status, Written};
use rustix::fs::FallocateFlags;
use rustix::io::{self, Errno};

use super::{Mounted, OpenFlags};
use crate::callers::Requester;
use crate::invalidation::Invalidation;
use crate::limits::COPY_BYTES_MAX;
use crate::opens::OpenFile;

/// Values of `whence` in lseek(2) for data and holes.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// The flags of a WRITE request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteHow {
    /// The flags with which the file was opened.
    pub(crate) flags: OpenFlags,
    /// True if the writing process lacks the privilege to keep set-id bits, so that the write
    /// clears them.
    pub(crate) clears_set_ids: bool,
}

impl Mounted {
    /// Reads into `bytes` until `count` bytes are there or the file ends. A short reply would make
    /// the kernel fill the rest with zeros.
    pub(crate) fn read(
        &self,
        who: Requester,
        open: u64,
        (offset, count): (u64, u32),
        bytes: &mut Vec<u8>,
    ) -> io::Result<()> {
        let file = self.opens.get(open)?;
        bytes.clear();
        while bytes.len() < count as usize {
            let done = bytes.len() as u32;
            let piece = (offset.saturating_add(done.into()), count - done);
            if self.read_piece(who, &file, piece, bytes)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads once; returns whether the end of the file was reached.
    fn read_piece(
        &self,
        who: Requester,
        file: &OpenFile,
        (offset, count): (u64, u32),
        bytes: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let before = bytes.len();
        let read = self.verb(who, || {
            bytes.truncate(before);
            let mut into = ReadInto { opened: true, ..ReadInto::new(bytes) };
            self.fs.read(&file.cred, &file.handle, offset, count, &mut into)
        })?;
        // Neither data nor the end of the file: fail rather than let the kernel add zeros.
        match read.eof {
            false if bytes.len() == before => Err(Errno::IO),
            eof => Ok(eof),
        }
    }

    /// Writes all of `data`; returns the number of bytes written before an error.
    pub(crate) fn write(
        &self,
        who: Requester,
        open: u64,
        (offset, data): (u64, &[u8]),
        how: WriteHow,
    ) -> io::Result<u32> {
        let file = self.opens.get(open)?;
        let cred = self.writer(who, &file, how);
        file.unflushed.store(true, Ordering::Release);
        let offset = if how.flags.appends() { self.end_of(who, &file, offset)? } else { offset };
        let mut written = 0;
        while let Some(rest) = data.get(written..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(written as u64);
            match self.write_piece(who, (&file, &cred), at, rest) {
                Ok(0) => break,
                Ok(count) => written += count as usize,
                Err(error) if written == 0 => return Err(error),
                Err(_) => break,
            }
        }
        if written == 0 && !data.is_empty() { Err(Errno::IO) } else { Ok(written as u32) }
    }

    /// The end of a file for an append. The kernel's size may be out of date if another client has
    /// written. In this case its page at the old end is wrong, too, and is invalidated.
    fn end_of(&self, who: Requester, file: &OpenFile, offset: u64) -> io::Result<u64> {
        let attr = self.verb(who, || self.fs.getattr(&file.handle))?;
        if attr.size != offset {
            self.queue.push(Invalidation::Data(file.number));
        }
        Ok(attr.size)
    }

    /// The credential for a write: that of the opener. But if the write must clear set-id bits, the
    /// opener might be privileged to keep them, so the writing process's credential is used.
    fn writer(&self, who: Requester, file: &OpenFile, how: WriteHow) -> Cred<Disk> {
        let opener = (file.cred.uid.number(), file.cred.gid.number());
        match how.clears_set_ids && opener != (who.uid, who.gid) {
            true => self.cred(who),
            false => file.cred.clone(),
        }
    }

    fn write_piece(
        &self,
        who: Requester,
        (file, cred): (&OpenFile, &Cred<Disk>),
        offset: u64,
        data: &[u8],
    ) -> io::Result<u32> {
        match self.verb(who, || self.write_once(cred, &file.handle, offset, data)) {
            Ok(Written { value, change }) => {
                self.note(file.number, &change);
                Ok(value)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes, and returns the change. A caller that has opened the file keeps the right to write.
    fn write_once(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> comity_vfs::Result<Written<Disk>> {
        match self.fs.write(cred, node, offset, data) {
            Err(Status::Acces | Status::Perm) => {
                let value = self.fs.write_opened(cred, node, offset, data)?;
                Ok(Written { value, change: comity_vfs::Change::UNKNOWN })
            }
            done => done,
        }
    }

    /// Answers fallocate(2): allocates space or makes a hole. A hole must keep the size; other
    /// modes are not supported.
    pub(crate) fn fallocate(
        &self,
        who: Requester,
        open: u64,
        (offset, length): (u64, u64),
        mode: u32,
    ) -> io::Result<()> {
        let file = self.opens.get(open)?;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let (fs, cred, node) = (&self.fs, &file.cred, &file.handle);
        let change = match FallocateFlags::from_bits_retain(mode) {
            flags if flags.is_empty() => {
                self.verb(who, || fs.allocate(cred, node, offset, length))?
            }
            flags if flags == hole => {
                self.verb(who, || fs.deallocate(cred, node, offset, length))?
            }
            _ => return Err(Errno::OPNOTSUPP),
        };
        self.note(file.number, &change);
        Ok(())
    }

    /// Answers lseek(2) for data and holes; the kernel handles the other modes itself.
    pub(crate) fn lseek(
        &self,
        who: Requester,
        open: u64,
        offset: i64,
        whence: i32,
    ) -> io::Result<u64> {
        let file = self.opens.get(open)?;
        let what = match whence {
            SEEK_DATA => Seek::Data,
            SEEK_HOLE => Seek::Hole,
            _ => return Err(Errno::INVAL),
        };
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        self.verb(who, || self.fs.seek(&file.cred, &file.handle, offset, what))
    }

    /// Answers copy_file_range(2); returns the number of bytes copied.
    pub(crate) fn copy(
        &self,
        who: Requester,
        (source, from): (u64, u64),
        (target, to): (u64, u64),
        length: u64,
    ) -> io::Result<u32> {
        let (source, target) = (self.opens.get(source)?, self.opens.get(target)?);
        let (length, cred) = (length.min(COPY_BYTES_MAX), &target.cred);
        let copied = self.verb(who, || {
            let (source, target) = ((&source.handle, from), (&target.handle, to));
            self.fs.copy(cred, source, target, length)
        })?;
        self.note(target.number, &copied.change);
        Ok(copied.value as u32)
    }
}
