//! Files with data that the file system below does not have yet: plain data under locks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Cred, Disk, Handle, Status, Time};

use crate::dirty::Extents;

/// All such files.
#[derive(Default)]
pub(crate) struct DirtyFiles {
    files: Mutex<HashMap<Handle, Arc<DirtyFile>>>,
    /// Bytes of all of them.
    bytes: AtomicU64,
}

/// One of them.
pub(crate) struct DirtyFile {
    state: Mutex<DirtyState>,
    /// Held while data goes to the file system below: one thread at a time sends.
    turn: Mutex<()>,
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
    pub(crate) fn lock(&self) -> MutexGuard<'_, DirtyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn to send.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DirtyFiles {
    /// The file, if it is one.
    pub(crate) fn get(&self, node: &Handle) -> Option<Arc<DirtyFile>> {
        self.lock().get(node).cloned()
    }

    /// The file, which becomes one.
    pub(crate) fn enter(&self, node: &Handle, cred: &Cred<Disk>, now: u64) -> Arc<DirtyFile> {
        let new = || {
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
            Arc::new(DirtyFile { state: Mutex::new(state), turn: Mutex::default() })
        };
        Arc::clone(self.lock().entry(*node).or_insert_with(new))
    }

    /// Lets go of a file that has no data and no failure any more.
    pub(crate) fn leave(&self, node: &Handle) {
        let mut files = self.lock();
        let is_done = files.get(node).is_some_and(|file| {
            // Nobody else has it in hand, so that nobody adds data to it.
            let state = file.lock();
            Arc::strong_count(file) == 1 && state.is_clean() && state.failure.is_none()
        });
        if is_done {
            files.remove(node);
        }
    }

    /// All files.
    pub(crate) fn all(&self) -> Vec<(Handle, Arc<DirtyFile>)> {
        self.lock().iter().map(|(node, file)| (*node, Arc::clone(file))).collect()
    }

    /// The bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes how many bytes a file has more, or less.
    pub(crate) fn count(&self, before: u64, after: u64) {
        self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, Arc<DirtyFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
