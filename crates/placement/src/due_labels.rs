use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use comity_vfs::Handle;

use crate::limits::DUE_LABELS_MAX;

/// The files of which data files lack a label or have an old one.
#[derive(Default)]
pub(crate) struct DueLabels(Mutex<HashSet<Handle>>);

impl DueLabels {
    /// Notes a file. If there is no room, its label is written by the next walk of all files.
    pub(crate) fn note(&self, file: &Handle) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() < DUE_LABELS_MAX {
            files.insert(*file);
        }
    }

    /// Takes all files.
    pub(crate) fn take(&self) -> HashSet<Handle> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
