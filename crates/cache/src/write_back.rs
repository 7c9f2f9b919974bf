//! Files with data that the file system below does not have yet: plain data under locks.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Cred, Disk, Handle, Status, Time};

use crate::dirty::Extents;

/// All such files.
#[derive(Default)]
pub(crate) struct DirtyFiles {
    files: Mutex<HashMap<Handle, KnownDirty>>,
    /// Bytes of all of them.
    bytes: AtomicU64,
}

/// A file and the number of those who have it in hand.
struct KnownDirty {
    file: Arc<DirtyFile>,
    users: usize,
}

/// A file in hand: it stays one of them meanwhile. Once nobody has it in hand it is let go of if it
/// has no data and no failure any more.
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

/// One of them.
pub(crate) struct DirtyFile {
    state: Mutex<DirtyState>,
    /// Held while data goes to the file system below: one thread at a time sends.
    turn: Mutex<()>,
    /// Held while data is taken: it has one order in the journal and here.
    order: Mutex<()>,
}

/// The data of a file and what is to be known about it.
pub(crate) struct DirtyState {
    /// Data that waits.
    pub(crate) waiting: Extents,
    /// Data that is on its way; what waits lies over it.
    pub(crate) sending: Extents,
    /// When the oldest data was written, in milliseconds.
    pub(crate) since: u64,
    /// The last writer.
    pub(crate) cred: Cred<Disk>,
    /// When it wrote.
    pub(crate) written: Time,
    /// The change attribute of the file below that the data was written over.
    pub(crate) base: u64,
    /// The last record of the journal with data of this file.
    pub(crate) record: u64,
    /// A failure that no program has heard of yet.
    pub(crate) failure: Option<Status>,
    /// Others may have changed the file: nothing is sent unless `base` is still true.
    pub(crate) doubtful: bool,
}

impl DirtyState {
    /// Begins to have data, if there is none yet, over this change attribute; returns the one that
    /// its data was written over.
    pub(crate) fn begin(&mut self, change: u64, now: u64) -> u64 {
        if self.is_clean() {
            (self.since, self.base) = (now, change);
        }
        self.base
    }

    /// Returns whether there is no data.
    pub(crate) const fn is_clean(&self) -> bool {
        self.waiting.is_empty() && self.sending.is_empty()
    }

    /// The end of the data.
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

    /// Takes the turn to add data.
    pub(crate) fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn to send.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DirtyFiles {
    /// The file, if it is one.
    pub(crate) fn get(&self, node: &Handle) -> Option<InUse<'_>> {
        self.lock().get_mut(node).map(|known| self.take(node, known))
    }

    /// The file, which becomes one.
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

    /// All files.
    pub(crate) fn all(&self) -> Vec<(Handle, InUse<'_>)> {
        let mut files = self.lock();
        files.iter_mut().map(|(node, known)| (*node, self.take(node, known))).collect()
    }

    /// The bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes how many bytes a file has more, or less.
    pub(crate) fn count(&self, before: u64, after: u64) {
        self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, KnownDirty>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
