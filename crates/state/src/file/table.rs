use std::sync::Arc;
use std::time::Duration;

use super::File;
use crate::sync::atomic::AtomicUsize;
use crate::table::{Keyed, Table};
use crate::{Error, FileKey, Result};

/// All files that clients have open, locked or delegated, and the list of those with a deadline.
pub(crate) struct Files {
    all: Table<File>,
    watched: Table<File>,
    /// Number of delegations of all files.
    pub(crate) delegations: AtomicUsize,
    /// Number of layouts of all files, and of files with a fence that has to be raised.
    pub(crate) layouts: AtomicUsize,
    /// Number of opens of all files that deny access to others.
    pub(crate) denies: AtomicUsize,
}

impl Files {
    pub(crate) fn new() -> Self {
        let [delegations, layouts, denies] = [(); 3].map(|()| AtomicUsize::new(0));
        Self { all: Table::new(), watched: Table::new(), delegations, layouts, denies }
    }

    pub(crate) fn get(&self, key: &FileKey) -> Option<Arc<File>> {
        self.all.get(key)
    }

    /// Returns all files.
    pub(crate) fn all(&self) -> Vec<Arc<File>> {
        self.all.all()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Calls `look` with a file if it is in the table. The file may leave the table afterwards.
    pub(crate) fn look<R>(&self, key: &FileKey, look: impl FnOnce(&File) -> R) -> Option<R> {
        self.all.look(key, look)
    }

    /// Calls `each` with every file.
    pub(crate) fn each(&self, each: impl FnMut(&File)) {
        self.all.each(each);
    }
}

impl Keyed for File {
    type Key = FileKey;

    fn key(&self) -> &FileKey {
        &self.key
    }
}

impl Files {
    /// Returns a file, and adds it to the table if it is unknown. `offer` is the time for which a
    /// free lock stays offered.
    ///
    /// # Errors
    /// [`Error::Resource`].
    pub(crate) fn get_or_make(&self, key: &FileKey, offer: Duration) -> Result<Arc<File>> {
        let make = || File::new(*key, offer);
        self.all.get_or_insert(key, make).ok_or(Error::Resource)
    }

    /// Returns the files with a deadline. The list may contain others.
    pub(crate) fn watched(&self) -> Vec<Arc<File>> {
        self.watched.all()
    }

    /// Removes a file without a deadline from the list of those that a tick checks.
    pub(crate) fn unwatch(&self, file: &Arc<File>) {
        if file.state().has_deadline() {
            return;
        }
        self.watched.remove(&file.key);
        // An owner may have begun to wait since the first check.
        if file.state().has_deadline() {
            self.watch(file);
        }
    }

    /// Removes a file without state from the table. If another thread uses it, or an ended state
    /// still refers to it, a later tick removes it.
    pub(crate) fn let_go(&self, now: Duration, file: &Arc<File>) {
        let is_idle = |file: &File| file.state().is_idle(now);
        if !self.all.remove_idle(file, is_idle) {
            self.watch(file);
        }
    }

    /// Adds a file to the list of those that a tick checks.
    pub(crate) fn watch(&self, file: &Arc<File>) {
        if self.watched.get(&file.key).is_none() {
            self.watched.insert(Arc::clone(file));
        }
    }

    /// Calls `each` with every file in which an owner waits, and with some others. No part of the
    /// list is locked meanwhile, so `each` may add files to it.
    pub(crate) fn each_watched(&self, now: Duration, mut each: impl FnMut(&File)) {
        for file in self.watched.all() {
            each(&file);
            // A client that released the file meanwhile could not remove it from the table.
            self.let_go(now, &file);
        }
    }
}
