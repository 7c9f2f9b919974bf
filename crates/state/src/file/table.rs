use std::sync::Arc;
use std::time::Duration;

use super::File;
use crate::sync::atomic::AtomicUsize;
use crate::table::{Keyed, Table};
use crate::{Error, FileKey, Result};

/// All files that clients have open, locked or delegated, and those among them with a deadline.
pub(crate) struct Files {
    all: Table<File>,
    watched: Table<File>,
    /// Delegations of all files.
    pub(crate) delegations: AtomicUsize,
    /// Opens of all files that deny others something.
    pub(crate) denies: AtomicUsize,
}

impl Files {
    pub(crate) fn new() -> Self {
        let (delegations, denies) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { all: Table::new(), watched: Table::new(), delegations, denies }
    }

    pub(crate) fn get(&self, key: &FileKey) -> Option<Arc<File>> {
        self.all.get(key)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<File>> {
        self.all.all()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Shows a file, if it is known, without keeping it in the table.
    pub(crate) fn look<R>(&self, key: &FileKey, look: impl FnOnce(&File) -> R) -> Option<R> {
        self.all.look(key, look)
    }

    /// Shows all files without keeping any in the table.
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
    /// A file, known or not; `offer` is how long an offered lock stands.
    ///
    /// # Errors
    /// [`Error::Resource`].
    pub(crate) fn get_or_make(&self, key: &FileKey, offer: Duration) -> Result<Arc<File>> {
        let make = || File::new(*key, offer);
        self.all.get_or_insert(key, make).ok_or(Error::Resource)
    }

    /// Returns the files with a deadline, and some others.
    pub(crate) fn watched(&self) -> Vec<Arc<File>> {
        self.watched.all()
    }

    /// Does not watch a file any more that waits for nothing.
    pub(crate) fn unwatch(&self, file: &Arc<File>) {
        if file.state().has_deadline() {
            return;
        }
        self.watched.remove(&file.key);
        // An owner may have begun to wait in between.
        if file.state().has_deadline() {
            self.watch(file);
        }
    }

    /// Forgets a file that no client has anything of: at once, or at a later tick if another thread
    /// is using it or another ended state still refers to it.
    pub(crate) fn let_go(&self, now: Duration, file: &Arc<File>) {
        let is_idle = |file: &File| file.state().is_idle(now);
        if !self.all.remove_idle(file, is_idle) {
            self.watch(file);
        }
    }

    /// Adds a file to those that a tick looks at.
    pub(crate) fn watch(&self, file: &Arc<File>) {
        if self.watched.get(&file.key).is_none() {
            self.watched.insert(Arc::clone(file));
        }
    }

    /// Shows the files in which an owner waits, among others. `each` may add files to them, so no
    /// part of their table is locked meanwhile.
    pub(crate) fn each_watched(&self, now: Duration, mut each: impl FnMut(&File)) {
        for file in self.watched.all() {
            each(&file);
            // A client that released it meanwhile could not forget it.
            self.let_go(now, &file);
        }
    }
}
