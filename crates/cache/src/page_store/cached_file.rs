//! A file of the cache, and own changes of it that are under way.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Epoch, PageStore};
use crate::header::Header;
use crate::key::{FileName, Paths};

/// A cached file.
pub(super) struct CachedFile {
    pub(super) paths: Paths,
    /// The header; `None` if nothing of the file is cached.
    pub(super) header: RwLock<Option<Header>>,
    /// Number of the file's last change through this cache; unique among all changes.
    pub(super) edit: AtomicU64,
    /// True until a header with this epoch is written. Before that, no older entry of the table can
    /// match the epoch.
    pub(super) is_new: AtomicBool,
    /// The number of own changes under way.
    pub(super) changes: AtomicU32,
    /// True if pages may have been kept across a change of the file: another client's change may
    /// have come beside it.
    pub(super) is_carried: AtomicBool,
}

/// An own change of a file that is under way.
pub(crate) struct OwnChange<'s> {
    store: &'s PageStore,
    file: FileName,
    object: Arc<CachedFile>,
}

impl Drop for OwnChange<'_> {
    fn drop(&mut self) {
        self.object.changes.fetch_sub(1, Ordering::SeqCst);
        self.store.save_later(&self.file);
    }
}

impl CachedFile {
    pub(super) fn epoch(&self, header: &Header) -> Epoch {
        Epoch { number: header.epoch, edit: self.edit.load(Ordering::Relaxed) }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Option<Header>> {
        self.header.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Option<Header>> {
        self.header.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PageStore {
    /// Begins an own change of a file, which ends when the result is dropped. Until then no header
    /// is written: the pages of the new version are not all there.
    pub(crate) fn begin_change(&self, file: &FileName) -> OwnChange<'_> {
        let object = self.object(file);
        object.changes.fetch_add(1, Ordering::SeqCst);
        OwnChange { store: self, file: *file, object }
    }
}
