//! Files with unsent data: state under locks, without I/O.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Cred, Disk, Handle, Status, Time};

use crate::dirty::Extents;

/// All files with unsent data.
#[derive(Default)]
pub(crate) struct DirtyFiles {
    files: Mutex<HashMap<Handle, KnownDirty>>,
    /// Bytes of unsent data of all files.
    bytes: AtomicU64,
}

/// A file and the number of its users.
struct KnownDirty {
    file: Arc<DirtyFile>,
    users: usize,
}

/// A use of a file, during which the file stays in the table. After the last use it is removed if
/// it has no unsent data and no failure.
pub(crate) struct InUse<'a> {
    files: &'a DirtyFiles,
    node: Handle,
    file: Arc<DirtyFile>,
}

impl Deref for InUse<'_> {
    type Target = DirtyFile;

    fn deref(&self) -> &DirtyFile {
        &self.file
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.files.leave(&self.node);
    }
}

/// A file with unsent data.
pub(crate) struct DirtyFile {
    state: Mutex<DirtyState>,
    /// Held while data is sent, so that one thread at a time sends.
    turn: Mutex<()>,
    /// Held while data is added, so that the journal and the state have the same order.
    order: Mutex<()>,
}

/// The unsent data of a file.
pub(crate) struct DirtyState {
    /// Data that waits to be sent.
    pub(crate) waiting: Extents,
    /// Data that is being sent; `waiting` is newer.
    pub(crate) sending: Extents,
    /// The time of the oldest data, in milliseconds.
    pub(crate) since: u64,
    /// The last writer.
    pub(crate) cred: Cred<Disk>,
    /// The time of the last write.
    pub(crate) written: Time,
    /// The change attribute of the version that the data was written over.
    pub(crate) base: u64,
    /// The last record of the journal with data of this file.
    pub(crate) record: u64,
    /// A failure that was not reported to a program yet.
    pub(crate) failure: Option<Status>,
    /// True if another client may have changed the file: data is sent only if its change attribute
    /// is still `base`.
    pub(crate) doubtful: bool,
}

impl DirtyState {
    /// Prepares for new data over the version with this change attribute; returns the change
    /// attribute that the unsent data was written over.
    pub(crate) fn begin(&mut self, change: u64, now: u64) -> u64 {
        if self.is_clean() {
            (self.since, self.base) = (now, change);
        }
        self.base
    }

    /// Returns whether there is no unsent data.
    pub(crate) const fn is_clean(&self) -> bool {
        self.waiting.is_empty() && self.sending.is_empty()
    }

    /// The end of the unsent data.
    pub(crate) fn end(&self) -> u64 {
        self.waiting.end().max(self.sending.end())
    }
}

impl DirtyFile {
    fn new(cred: &Cred<Disk>, now: u64) -> Self {
        let state = DirtyState {
            waiting: Extents::default(),
            sending: Extents::default(),
            since: now,
            cred: cred.clone(),
            written: Time::default(),
            base: 0,
            record: 0,
            failure: None,
            doubtful: false,
        };
        Self { state: Mutex::new(state), turn: Mutex::default(), order: Mutex::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, DirtyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the order of new data.
    pub(crate) fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks sending.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DirtyFiles {
    /// Returns a file if it is in the table.
    pub(crate) fn get(&self, node: &Handle) -> Option<InUse<'_>> {
        self.lock().get_mut(node).map(|known| self.take(node, known))
    }

    /// Returns a file; adds it to the table if needed.
    pub(crate) fn enter(&self, node: &Handle, cred: &Cred<Disk>, now: u64) -> InUse<'_> {
        let new = || KnownDirty { file: Arc::new(DirtyFile::new(cred, now)), users: 0 };
        self.take(node, self.lock().entry(*node).or_insert_with(new))
    }

    fn take(&self, node: &Handle, known: &mut KnownDirty) -> InUse<'_> {
        known.users += 1;
        InUse { files: self, node: *node, file: Arc::clone(&known.file) }
    }

    fn leave(&self, node: &Handle) {
        let mut files = self.lock();
        let Some(known) = files.get_mut(node) else { return };
        known.users -= 1;
        let is_done = known.users == 0 && {
            let state = known.file.lock();
            state.is_clean() && state.failure.is_none()
        };
        if is_done {
            files.remove(node);
        }
    }

    /// Returns all files.
    pub(crate) fn all(&self) -> Vec<(Handle, InUse<'_>)> {
        let mut files = self.lock();
        files.iter_mut().map(|(node, known)| (*node, self.take(node, known))).collect()
    }

    /// Bytes of unsent data of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adjusts the number of bytes by the change of one file.
    pub(crate) fn count(&self, before: u64, after: u64) {
        self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, KnownDirty>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
