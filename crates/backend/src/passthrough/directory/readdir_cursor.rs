use std::collections::VecDeque;
use std::ffi::CStr;
use std::fs::File;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use comity_vfs::{Handle, Result, Time};
use rustix::fs::{FileType, RawDir, RawDirEntry, SeekFrom, seek};
use rustix::io::Errno;

use crate::errno::status;
use crate::passthrough::access::access_cache::is_past;
use crate::passthrough::limits::{CURSORS_MAX, LISTING_BYTES};

/// One entry as the kernel lists it.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) fileid: u64,
    pub(crate) cookie: u64,
    /// True if it may be a directory: not all file systems report the type.
    pub(crate) maybe_directory: bool,
    /// The length of its name.
    length: u8,
    /// The offset of the name in [`Batch::names`]; a zero follows the name.
    start: u32,
}

/// Entries that were read together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    names: Vec<u8>,
}

impl Batch {
    /// Returns an entry's name with a terminating zero.
    pub(crate) fn name(&self, item: &Item) -> &CStr {
        let bytes = self.names.get(item.start as usize..).unwrap_or_default();
        CStr::from_bytes_until_nul(bytes).unwrap_or_default()
    }

    /// An entry's name.
    pub(crate) fn name_bytes(&self, item: &Item) -> &[u8] {
        let start = item.start as usize;
        self.names.get(start..start + usize::from(item.length)).unwrap_or_default()
    }

    fn push(&mut self, entry: &RawDirEntry<'_>) {
        let name = entry.file_name().to_bytes_with_nul();
        let Ok(length) = u8::try_from(name.len() - 1) else { return };
        let start = self.names.len() as u32;
        self.names.extend_from_slice(name);
        let maybe_directory = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        let (fileid, cookie) = (entry.ino(), entry.next_entry_cookie());
        self.items.push(Item { fileid, cookie, maybe_directory, length, start });
    }

    fn clear(&mut self) {
        self.items.clear();
        self.names.clear();
    }
}

/// The version of a directory's entries: its ctime, and the number of changes that this server has
/// made.
pub(crate) type Version = (Time, u64);

/// An open listing of one directory. It has its own descriptor, because a descriptor has one
/// position, and entries that were read but not shown yet.
#[derive(Debug)]
pub(crate) struct Cursor {
    dir: Handle,
    file: File,
    /// The cookie of the entry after which the cursor is.
    cookie: u64,
    batch: Batch,
    /// The number of entries of the batch that have been shown.
    shown: usize,
    /// The directory's version when the batch was read.
    version: Version,
    /// True if any later change would have given the directory another version.
    lasts: bool,
    room: Vec<u8>,
}

impl Cursor {
    /// A listing that begins at the start of `file`.
    pub(crate) fn new(dir: Handle, file: File) -> Self {
        let (batch, version) = (Batch::default(), Version::default());
        let room = Vec::with_capacity(LISTING_BYTES);
        Self { dir, file, cookie: 0, batch, shown: 0, version, lasts: false, room }
    }

    /// Moves the cursor to the position after the entry of `cookie`. Entries that were read earlier
    /// are dropped if the directory has changed since, or may have changed without a new version.
    pub(crate) fn seek(&mut self, cookie: u64, version: Version) -> Result<()> {
        if self.cookie != cookie && self.follows() == Some(cookie) {
            self.advance(1);
        }
        if self.cookie != cookie || self.version != version || !self.lasts {
            self.batch.clear();
            self.shown = 0;
            seek_to(&self.file, cookie)?;
            self.cookie = cookie;
        }
        self.version = version;
        self.lasts = is_past(version.0);
        Ok(())
    }

    /// Returns the cookie of the next entry, at which a listing may continue: a visitor that
    /// stopped there may have taken the entry.
    fn follows(&self) -> Option<u64> {
        self.batch.items.get(self.shown).map(|item| item.cookie)
    }

    /// Returns whether the cursor is at the entry after which a listing continues.
    fn is_at(&self, dir: &Handle, cookie: u64) -> bool {
        self.dir == *dir && (self.cookie == cookie || self.follows() == Some(cookie))
    }

    /// Returns the next entries; there are none at the end.
    pub(crate) fn rest(&mut self) -> Result<(&Batch, &[Item])> {
        if self.shown >= self.batch.items.len() {
            self.shown = 0;
            read_batch(&self.file, &mut self.batch, &mut self.room)?;
        }
        let items = self.batch.items.get(self.shown..).unwrap_or_default();
        Ok((&self.batch, items))
    }

    /// Notes that this many entries of [`Cursor::rest`] were shown.
    pub(crate) fn advance(&mut self, count: usize) {
        self.shown += count;
        if let Some(item) = self.shown.checked_sub(1).and_then(|last| self.batch.items.get(last)) {
            self.cookie = item.cookie;
        }
    }
}

/// Listings that wait for their next call.
#[derive(Debug, Default)]
pub(crate) struct Cursors(Mutex<VecDeque<Cursor>>);

impl Cursors {
    /// Returns the listing of a directory that is at `cookie`, if there is one.
    pub(crate) fn take(&self, dir: &Handle, cookie: u64) -> Option<Cursor> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = waiting.iter().position(|one| one.is_at(dir, cookie))?;
        waiting.remove(place)
    }

    /// Keeps a listing for its next call.
    pub(crate) fn put(&self, cursor: Cursor) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(cursor);
        let oldest = if waiting.len() > CURSORS_MAX { waiting.pop_front() } else { None };
        drop(waiting);
        drop(oldest);
    }

    /// Closes all descriptors of the listings.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(all);
    }
}

/// Cookies are the kernel's own positions (`d_off`): on ext4 hashes of the names, on XFS, btrfs and
/// tmpfs (Linux 6.6) numbers that an entry keeps; all outlive changes of the directory.
fn seek_to(file: &File, cookie: u64) -> Result<()> {
    match seek(file, SeekFrom::Start(cookie)) {
        Ok(_) => Ok(()),
        Err(Errno::INVAL | Errno::OVERFLOW) => Err(comity_vfs::Status::BadCookie),
        Err(errno) => Err(status(errno)),
    }
}

/// Reads the entries that one system call returns; the batch is empty at the end of the directory.
pub(crate) fn read_batch(file: &File, batch: &mut Batch, room: &mut Vec<u8>) -> Result<()> {
    batch.clear();
    read_more(file, batch, room)
}

/// Adds the entries that one system call returns; none are added at the end of the directory.
pub(crate) fn read_more(file: &File, batch: &mut Batch, room: &mut Vec<u8>) -> Result<()> {
    let before = batch.items.len();
    let room: &mut [MaybeUninit<u8>] = room.spare_capacity_mut();
    let mut entries = RawDir::new(file, room);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(status)?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            batch.push(&entry);
        }
        if entries.is_buffer_empty() && batch.items.len() > before {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_within_a_tick_of_a_change_do_not_count_later() {
        let folder = tempfile::tempdir().unwrap();
        let dir = File::open(folder.path()).unwrap();
        let mut cursor = Cursor::new(Handle::new(b"dir").unwrap(), dir);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let time = Time { seconds: now.as_secs() as i64, nanoseconds: now.subsec_nanos() };
        std::fs::write(folder.path().join("one"), b"").unwrap();
        for expected in 1..=2 {
            cursor.seek(0, (time, 0)).unwrap();
            assert_eq!(cursor.rest().unwrap().1.len(), expected);
            std::fs::write(folder.path().join("two"), b"").unwrap();
        }
    }
}
