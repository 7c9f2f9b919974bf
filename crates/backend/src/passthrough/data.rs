use std::fs::File;

use comity_vfs::{Cred, Data, Disk, Handle, Read, ReadInto, Result, Status, Written};
use rustix::io::{Errno, pwrite, retry_on_intr};

use super::Passthrough;
use super::attr::attr;
use super::errno::status;
use super::fetch::must_be_file;
use super::node::Use;
use super::space::FILE_SIZE_MAX;
use crate::blocking::{blocking, is_hooked};
use crate::sys::{self, Patience};

impl Passthrough {
    /// See [`comity_vfs::Fs::read`].
    pub(super) fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        let (node, stat) = self.file(node)?;
        self.admit_reader(cred, &node, &stat)?;
        let attr = attr(&node.volume, &stat);
        let present = attr.size.saturating_sub(offset).min(count.into()) as u32;
        if present == 0 {
            let eof = offset >= attr.size;
            return Ok(Read { data: Data::Appended(0), eof, attr });
        }
        let file = self.data(&node, Use::Read)?;
        if present >= into.by_reference_from {
            let eof = offset.saturating_add(present.into()) >= attr.size;
            return Ok(Read { data: Data::File { file, offset, length: present }, eof, attr });
        }
        let length = read_now(&file, into.bytes, offset, present as usize)?;
        let eof = length < present || offset + u64::from(length) >= attr.size;
        Ok(Read { data: Data::Appended(length), eof, attr })
    }

    /// See [`comity_vfs::Fs::write`].
    pub(super) fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > FILE_SIZE_MAX) {
            return Err(Status::FBig);
        }
        let node = self.node(node)?;
        let writing = node.begin_write();
        let stat = self.stat(&node)?;
        must_be_file(&node)?;
        self.admit_writer(cred, &node, &stat)?;
        let file = self.data(&node, Use::Write)?;
        self.identity.caller(cred)?;
        let written = retry_on_intr(|| pwrite(&*file, data, offset)).map_err(status);
        node.barrier.written();
        let before = writing.is_alone().then(|| attr(&node.volume, &stat));
        let change = self.since(&node, before);
        Ok(Written { value: written? as u32, change })
    }
}

/// Reads until `count` bytes are there or the file ends, and lets others take over while the medium
/// is waited for.
fn read_now(file: &File, bytes: &mut Vec<u8>, offset: u64, count: usize) -> Result<u32> {
    let start = bytes.len();
    let mut patience = if is_hooked() { Patience::Cached } else { Patience::Wait };
    loop {
        let done = bytes.len() - start;
        match read_once(file, bytes, offset + done as u64, count - done, patience) {
            // Nothing, or no more, is in memory; or the file system cannot tell.
            Ok(_) | Err(Errno::AGAIN | Errno::OPNOTSUPP)
                if patience == Patience::Cached && bytes.len() - start < count =>
            {
                patience = Patience::Wait;
            }
            Ok(0) => break,
            Ok(_) if bytes.len() - start < count => {}
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(status(errno)),
        }
    }
    Ok((bytes.len() - start) as u32)
}

fn read_once(
    file: &File,
    bytes: &mut Vec<u8>,
    offset: u64,
    count: usize,
    patience: Patience,
) -> sys::Result<usize> {
    match patience {
        Patience::Cached => sys::read_append(file, bytes, offset, count, patience),
        Patience::Wait => blocking(|| sys::read_append(file, bytes, offset, count, patience)),
    }
}
