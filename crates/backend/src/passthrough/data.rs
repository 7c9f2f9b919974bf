use std::fs::File;
use std::io::IoSliceMut;

use comity_vfs::{Cred, Data, Disk, Handle, Read, ReadInto, Result, Status, Written};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwrite, retry_on_intr};

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
        // What has to wait for the disk waits here, where others can go on, not while it is sent.
        if present >= into.by_reference_from && !is_cold(&file, offset, present) {
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
        let writing = self.begin_write(&node);
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

/// Whether reading the end of a range would wait for the disk; somebody must want to know. Costs a
/// quarter of a microsecond.
fn is_cold(file: &File, offset: u64, length: u32) -> bool {
    let (last, mut byte) = (offset + u64::from(length) - 1, [0; 1]);
    let mut look =
        || preadv2(file, &mut [IoSliceMut::new(&mut byte)], last, ReadWriteFlags::NOWAIT);
    is_hooked() && look() == Err(Errno::AGAIN)
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

#[cfg(test)]
mod tests {
    use comity_vfs::{Fs, Gid, Name, Uid};
    use rustix::fs::{Advice, fadvise};

    use super::super::PassthroughOptions;
    use super::*;
    use crate::blocking::watch;

    #[test]
    fn a_large_read_waits_for_the_disk_itself_and_is_sent_by_reference_when_it_need_not() {
        watch::install();
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR").to_owned() + "/../../target");
        let folder = folder.unwrap();
        let (path, bytes) = (folder.path().join("file"), vec![7; 1 << 20]);
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let fs = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
        let cred = Cred::new(Uid::new(0), Gid::new(0));
        let found = fs.lookup(&cred, &fs.root(), Name::new(b"file").unwrap()).unwrap();
        let read = || {
            let mut into = ReadInto { bytes: &mut Vec::new(), by_reference_from: 32 << 10 };
            let data = fs.read(&cred, &found.node.handle, 0, 1 << 20, &mut into).unwrap().data;
            (data, std::mem::take(into.bytes))
        };
        let thread = std::thread::current().id();
        let before = watch::sleeps_of(thread);
        match read() {
            (Data::Appended(_), read) => {
                assert!(read == bytes);
                assert_eq!(watch::sleeps_of(thread), before + 1);
            }
            (Data::File { .. }, _) => eprintln!("skipped: this file system keeps all in memory"),
        }
        let before = watch::sleeps_of(thread);
        assert!(matches!(read(), (Data::File { length: 0x10_0000, .. }, _)));
        assert_eq!(watch::sleeps_of(thread), before);
        fs.release_identity().unwrap();
    }
}
