use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use comity_vfs::{Handle, Result, Status};
use rustix::io::Errno;

use super::Ceph;
use super::ffi::{CephFile, CephInode, Vino};
use super::handle;
use super::limits::{IDLE, OPEN_FILES_MAX};

/// The files that are open.
#[derive(Default)]
pub(super) struct CephFiles {
    open: Mutex<FileTable>,
}

type FileTable = HashMap<(Vino, FileUse), Arc<DataFile>>;

/// The use for which a file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FileUse {
    /// It can be read.
    Read,
    /// It can be read and written.
    Write,
}

/// An open file.
pub(super) struct DataFile {
    pub(super) file: Arc<CephFile>,
    /// True if data was written since the last barrier began.
    written: AtomicBool,
    /// Locked for reading by each change of the data.
    changes: RwLock<()>,
    /// The file, opened once more (for reading) if it can be written. libcephfs reports the loss of
    /// data only when an open file is closed, so each barrier closes this one and opens another. It
    /// is locked during a barrier: another one must not succeed before the loss is remembered.
    witness: Mutex<Option<CephFile>>,
    used: Mutex<Instant>,
}

impl DataFile {
    fn new(file: CephFile, witness: Option<CephFile>) -> Self {
        let (file, written, witness) = (Arc::new(file), AtomicBool::new(false), witness.into());
        Self { file, written, changes: RwLock::default(), witness, used: Instant::now().into() }
    }

    /// Closes the file; an error says that data was lost since the last barrier.
    fn close(self) -> std::result::Result<(), Errno> {
        // Only the witness forgets a loss at each barrier: the file itself tells old ones, too.
        let _ = Arc::into_inner(self.file).map(CephFile::close);
        let witness = self.witness.into_inner().unwrap_or_else(PoisonError::into_inner);
        witness.map_or(Ok(()), CephFile::close)
    }

    /// Writes, and notes that a barrier must follow.
    pub(super) fn write(&self, data: &[u8], offset: i64) -> std::result::Result<usize, Errno> {
        let _change = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let written = self.file.write(data, offset);
        self.written.store(true, Ordering::SeqCst);
        written
    }

    /// Makes a hole, and notes that a barrier must follow.
    pub(super) fn punch(&self, offset: i64, length: i64) -> std::result::Result<(), Errno> {
        let _change = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let punched = self.file.punch(offset, length);
        self.written.store(true, Ordering::SeqCst);
        punched
    }

    /// Does `open`, which opens the file once more, while no change of the data waits to be
    /// stored. An open has libcephfs send such changes to the metadata server, and a barrier that
    /// comes later does not wait for its answer.
    fn settled<T>(&self, open: impl FnOnce() -> T) -> (std::result::Result<(), Errno>, T) {
        let _changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        (self.file.sync(), open())
    }

    /// Returns whether data needs a barrier.
    pub(super) fn is_written(&self) -> bool {
        self.written.load(Ordering::SeqCst)
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self, now: Instant) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(used) >= IDLE
    }
}

impl Ceph {
    /// Returns an open file of a regular file; it is opened if it is not.
    pub(super) fn data_file(
        &self,
        vino: Vino,
        inode: &CephInode<'_>,
        wanted: FileUse,
    ) -> Result<Arc<DataFile>> {
        if let Some(known) = self.files.get(vino, wanted) {
            return Ok(known);
        }
        let flags = match wanted {
            FileUse::Read => libc::O_RDONLY,
            FileUse::Write => libc::O_RDWR,
        };
        let file = self.done(CephFile::open(&self.mount, inode, flags))?;
        self.keep_file((vino, inode), wanted, file)
    }

    /// Keeps an open file for later calls. Another one that came meanwhile is used instead.
    pub(super) fn keep_file(
        &self,
        (vino, inode): (Vino, &CephInode<'_>),
        wanted: FileUse,
        file: CephFile,
    ) -> Result<Arc<DataFile>> {
        let witness = match wanted {
            FileUse::Read => None,
            FileUse::Write => Some(self.open_witness(inode)?),
        };
        let file = Arc::new(DataFile::new(file, witness));
        let mut open = self.files.table();
        let kept = Arc::clone(open.entry((vino, wanted)).or_insert(file));
        let is_full = open.len() > OPEN_FILES_MAX;
        drop(open);
        if is_full {
            self.close_files(OPEN_FILES_MAX / 8);
        }
        Ok(kept)
    }

    fn open_witness(&self, inode: &CephInode<'_>) -> Result<CephFile> {
        // Ceph would be asked for each open for writing if another client looks at the file.
        self.done(CephFile::open(&self.mount, inode, libc::O_RDONLY))
    }

    /// Closes `count` files that were not used for long.
    pub(super) fn close_files(&self, count: usize) {
        let mut all: Vec<_> = self.files.table().iter().map(entry).collect();
        // Held files stay open, and others must be closed instead.
        all.retain(|((vino, _), _)| !self.holds.has(*vino));
        all.sort_by_key(|(_, file)| *file.used.lock().unwrap_or_else(PoisonError::into_inner));
        for (key, file) in all.into_iter().take(count) {
            self.close_file(key, file);
        }
    }

    /// Closes the files that have not been used for a while.
    pub(super) fn close_idle_files(&self) {
        let now = Instant::now();
        let is_idle = |file: &Arc<DataFile>| file.is_idle(now);
        let idle: Vec<_> =
            self.files.table().iter().filter(|(_, file)| is_idle(file)).map(entry).collect();
        for (key, file) in idle {
            self.close_file(key, file);
        }
    }

    /// Closes a file that was open for writing; returns false if it is used or has data that Ceph
    /// does not have yet.
    pub(super) fn stop_writing(&self, vino: Vino) -> bool {
        let key = (vino, FileUse::Write);
        let known = self.files.table().get(&key).cloned();
        let Some(file) = known else { return true };
        if file.is_written() {
            return false;
        }
        self.close_file(key, file);
        !self.files.table().contains_key(&key)
    }

    /// Closes a file, unless somebody uses it. Its data is written first: the failure of a later
    /// write could not be reported to any caller.
    fn close_file(&self, key: (Vino, FileUse), file: Arc<DataFile>) {
        if file.is_written() && self.sync_file(key.0, &file).is_err() {
            // The failure is remembered, so the file need not stay open for it.
            tracing::debug!(?key, "a file was closed after its barrier failed");
        }
        let mut open = self.files.table();
        let is_unused = Arc::strong_count(&file) == 2 && !file.is_written();
        let closed = open.get(&key).is_some_and(|it| is_unused && Arc::ptr_eq(it, &file));
        let closed = if closed { open.remove(&key) } else { None };
        drop(open);
        if closed.is_none() {
            return;
        }
        drop(closed);
        if let Some(Err(errno)) = Arc::into_inner(file).map(DataFile::close) {
            // The failure is remembered for the next barrier of the object.
            let _ = self.note_failure(key.0, Err(errno));
        }
    }

    /// Puts the data of an open file on stable storage.
    pub(super) fn sync_file(&self, vino: Vino, file: &DataFile) -> Result<()> {
        let mut witness = file.witness.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = self.check_failures(&handle::encode(self.volume, vino)?);
        // A loss that is remembered need not keep the file open.
        earlier
            .and_then(|()| self.check_served(vino, file))
            .inspect_err(|_| file.written.store(false, Ordering::SeqCst))?;
        let inode = match self.inode(vino) {
            Err(Status::Stale) => None,
            inode => Some(inode?),
        };
        // Most of the data is written here, while more can come.
        let first = file.file.sync();
        let (second, next) = file.settled(|| {
            let next = inode.map(|inode| self.open_witness(&inode)).transpose();
            file.written.store(next.is_err(), Ordering::SeqCst);
            next
        });
        let replace = |next| std::mem::replace(&mut *witness, next).map_or(Ok(()), CephFile::close);
        let closed = next.map(replace);
        self.note_failure(vino, first.and(second).and(closed.unwrap_or(Ok(()))))?;
        closed.map(drop)
    }

    /// Does `open`, which opens a written file once more, when what was written is stored.
    pub(super) fn open_settled<T>(
        &self,
        vino: Vino,
        file: &DataFile,
        open: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let (synced, opened) = file.settled(open);
        // The caller has written nothing: the failure is remembered for the next barrier.
        let _ = self.note_failure(vino, synced);
        opened
    }

    /// Checks that the cluster has not cut this client off, in which case it drops what was
    /// written.
    fn check_served(&self, vino: Vino, file: &DataFile) -> Result<()> {
        match self.cut_off.load(Ordering::Relaxed) {
            true if file.is_written() => self.note_failure(vino, Err(Errno::SHUTDOWN)),
            true => Err(Status::Io),
            false => Ok(()),
        }
    }

    /// Remembers the failure of a barrier.
    pub(super) fn note_failure(
        &self,
        vino: Vino,
        outcome: std::result::Result<(), Errno>,
    ) -> Result<()> {
        let Err(errno) = outcome else { return Ok(()) };
        let status = self.status(errno);
        if let Ok(handle) = handle::encode(self.volume, vino) {
            tracing::error!(%errno, ?handle, "a barrier failed: written data may be lost");
            self.siblings.failures().keep(&handle, status, Instant::now());
        }
        Err(status)
    }

    /// Checks that no earlier barrier of an object has failed.
    pub(super) fn check_failures(&self, handle: &Handle) -> Result<()> {
        self.siblings.failures().of(handle, Instant::now())
    }

    /// Closes the files of an object that has lost its last name.
    pub(super) fn forget_removed(&self, vino: Vino, inode: &CephInode<'_>) {
        if !matches!(self.attr(inode), Err(Status::Stale)) {
            return;
        }
        let mut open = self.files.table();
        let gone = [FileUse::Read, FileUse::Write].map(|wanted| open.remove(&(vino, wanted)));
        drop(open);
        drop(gone);
    }
}

fn entry((key, file): (&(Vino, FileUse), &Arc<DataFile>)) -> ((Vino, FileUse), Arc<DataFile>) {
    (*key, Arc::clone(file))
}

impl CephFiles {
    /// Returns an open file for this use, if there is one.
    pub(super) fn get(&self, vino: Vino, wanted: FileUse) -> Option<Arc<DataFile>> {
        let open = self.table();
        let written = open.get(&(vino, FileUse::Write));
        let found = match wanted {
            FileUse::Read => written.or_else(|| open.get(&(vino, FileUse::Read))),
            FileUse::Write => written,
        };
        let found = found.cloned();
        drop(open);
        found.inspect(|file| file.touch())
    }

    fn table(&self) -> MutexGuard<'_, FileTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
