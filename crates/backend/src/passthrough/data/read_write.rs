use std::fs::File;
use std::io::IoSliceMut;

use comity_vfs::{Cred, Data, Disk, FileType, Handle, Read, ReadInto, Result, Status, Written};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwrite, retry_on_intr};

use super::space::FILE_SIZE_MAX;
use crate::blocking::{blocking, is_hooked};
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::attr;
use crate::passthrough::handles::node::{Node, Use};
use crate::passthrough::handles::open_handle::must_be_file;
use crate::sys::{self, Patience};

impl Passthrough {
    /// See [`comity_vfs::Fs::read`].
    pub(crate) fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        if into.opened
            && count < into.by_reference_from
            && let Some(read) = self.read_unjudged(node, offset, count, into.bytes)
        {
            return Ok(read);
        }
        let (node, stat) = self.file(node)?;
        if !into.opened {
            self.admit_reader(cred, &node, &stat)?;
        }
        let attr = attr(&node.mount, &stat);
        let present = attr.size.saturating_sub(offset).min(count.into()) as u32;
        if present == 0 {
            let eof = offset >= attr.size;
            return Ok(Read { data: Data::Appended(0), eof, attr: Some(attr) });
        }
        let file = self.data(&node, Use::Read)?;
        // Waits for the disk here, where other calls can continue, and not while the reply is sent.
        if present >= into.by_reference_from && !is_cold(&file, offset, present) {
            let eof = offset.saturating_add(present.into()) >= attr.size;
            let data = Data::File { file, offset, length: present };
            return Ok(Read { data, eof, attr: Some(attr) });
        }
        let length = read_now(&file, into.bytes, offset, present as usize)?;
        let eof = length < present || offset + u64::from(length) >= attr.size;
        Ok(Read { data: Data::Appended(length), eof, attr: Some(attr) })
    }

    /// Reads cached data of a file that is in use, one byte more than wanted: the extra byte shows
    /// that the file continues, so that its size need not be read. Returns `None` if that is not
    /// possible.
    fn read_unjudged(
        &self,
        handle: &Handle,
        offset: u64,
        count: u32,
        bytes: &mut Vec<u8>,
    ) -> Option<Read<Disk>> {
        let node = self.nodes.get(handle).filter(|node| node.kind == FileType::Regular)?;
        let (file, start) = (node.data(Use::Read)?, bytes.len());
        let more = (count as usize).checked_add(1)?;
        let read = sys::read_append(&file, bytes, offset, more, Patience::Cached).ok()?;
        let length = (read as u32).min(count);
        let (end, is_all) = (offset.saturating_add(length.into()), length == count);
        let eof = if read == more { Some(false) } else { ends_at(&node, end, is_all) };
        bytes.truncate(start + if eof.is_some() { length as usize } else { 0 });
        eof.map(|eof| Read { data: Data::Appended(length), eof, attr: None })
    }

    /// See [`comity_vfs::Fs::write`].
    pub(crate) fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        within_bounds(offset, data)?;
        let node = self.node(node)?;
        let writing = self.begin_write(&node);
        let stat = self.stat(&node)?;
        must_be_file(&node)?;
        self.admit_writer(cred, &node, &stat)?;
        let written = self.put(cred, &node, offset, data);
        let before = writing.is_alone().then(|| attr(&node.mount, &stat));
        let change = self.since(&node, before);
        Ok(Written { value: written?, change })
    }

    /// See [`comity_vfs::Fs::write_opened`].
    pub(crate) fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        within_bounds(offset, data)?;
        let node = self.regular(node)?;
        let _writing = self.begin_write(&node);
        self.put(cred, &node, offset, data)
    }

    fn put(&self, cred: &Cred<Disk>, node: &Node, offset: u64, data: &[u8]) -> Result<u32> {
        let file = self.data(node, Use::Write)?;
        self.identity.caller(cred)?;
        let written = retry_on_intr(|| pwrite(&*file, data, offset)).map_err(status);
        node.barrier.written();
        written.map(|count| count as u32)
    }
}

fn within_bounds(offset: u64, data: &[u8]) -> Result<()> {
    let end = offset.checked_add(data.len() as u64);
    if end.is_some_and(|end| end <= FILE_SIZE_MAX) { Ok(()) } else { Err(Status::FBig) }
}

/// Returns whether a file ends at `end`; `None` if the file is gone, or if fewer bytes than wanted
/// were read and the file does not end there.
fn ends_at(node: &Node, end: u64, is_all: bool) -> Option<bool> {
    let size = node.stat().ok()?.st_size.cast_unsigned();
    (is_all || end >= size).then_some(end >= size)
}

/// Returns whether reading the end of a range would wait for the disk; false if no hook is
/// installed. The cost is a quarter of a microsecond.
fn is_cold(file: &File, offset: u64, length: u32) -> bool {
    let (last, mut byte) = (offset + u64::from(length) - 1, [0; 1]);
    let mut look =
        || preadv2(file, &mut [IoSliceMut::new(&mut byte)], last, ReadWriteFlags::NOWAIT);
    is_hooked() && look() == Err(Errno::AGAIN)
}

/// Reads until `count` bytes are read or the file ends; other threads take over while it waits for
/// the disk.
fn read_now(file: &File, bytes: &mut Vec<u8>, offset: u64, count: usize) -> Result<u32> {
    let start = bytes.len();
    let mut patience = if is_hooked() { Patience::Cached } else { Patience::Wait };
    loop {
        let done = bytes.len() - start;
        match read_once(file, bytes, offset + done as u64, count - done, patience) {
            // No more data is cached, or the file system does not support the check.
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

    use super::*;
    use crate::blocking::watch;
    use crate::passthrough::PassthroughOptions;

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
            let mut bytes = Vec::new();
            let mut into = ReadInto { by_reference_from: 32 << 10, ..ReadInto::new(&mut bytes) };
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

    #[test]
    fn cached_data_is_read_under_an_open_without_a_look_at_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 10_000]).unwrap();
        let fs = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
        let cred = Cred::new(Uid::new(0), Gid::new(0));
        let found = fs.lookup(&cred, &fs.root(), Name::new(b"file").unwrap()).unwrap();
        let read = |offset| {
            let mut bytes = Vec::new();
            let mut into = ReadInto { opened: true, ..ReadInto::new(&mut bytes) };
            let read = fs.read(&cred, &found.node.handle, offset, 4096, &mut into).unwrap();
            (read.attr.is_some(), read.eof, bytes.len())
        };
        assert_eq!(read(0), (true, false, 4096), "it comes into use");
        assert_eq!(read(0), (false, false, 4096));
        assert_eq!(read(5904), (false, true, 4096));
        assert_eq!(read(9999), (false, true, 1));
        assert_eq!(read(10_000), (false, true, 0));
        std::fs::write(&path, [7; 10]).unwrap();
        assert_eq!(read(0), (false, true, 10));
        std::fs::remove_file(&path).unwrap();
        let mut bytes = b"kept".to_vec();
        let mut into = ReadInto { opened: true, ..ReadInto::new(&mut bytes) };
        let gone = fs.read(&cred, &found.node.handle, 0, 4096, &mut into);
        assert_eq!((gone.unwrap_err(), &bytes[..]), (Status::Stale, &b"kept"[..]));
        fs.release_identity().unwrap();
    }
}
