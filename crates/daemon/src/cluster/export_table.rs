//! The head of each export, as this head knows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_export::{FindMoved, Whereabouts};

/// The head of each export. Calls to an export that is not in the table have to wait.
#[derive(Debug, Default)]
pub(crate) struct ExportTable(Mutex<BTreeMap<PathBuf, Whereabouts>>);

impl ExportTable {
    /// Returns a function that tells where exports are.
    pub(crate) fn finder(self: &Arc<Self>) -> Arc<FindMoved> {
        let table = Arc::clone(self);
        Arc::new(move |path| Some(table.find(path)))
    }

    /// Returns the same function, except that these exports are at `place`.
    pub(super) fn finder_with(
        self: &Arc<Self>,
        meant: &[PathBuf],
        place: Whereabouts,
    ) -> Arc<FindMoved> {
        let (table, meant) = (Arc::clone(self), meant.to_vec());
        Arc::new(move |path| {
            let is_meant = meant.iter().any(|it| it == path);
            Some(if is_meant { place.clone() } else { table.find(path) })
        })
    }

    /// Returns the same function, except that the exports of a map are where it says.
    pub(super) fn finder_placing(
        self: &Arc<Self>,
        placed: BTreeMap<PathBuf, Whereabouts>,
    ) -> Arc<FindMoved> {
        let table = Arc::clone(self);
        Arc::new(move |path| Some(placed.get(path).cloned().unwrap_or_else(|| table.find(path))))
    }

    /// Returns where an export is.
    pub(super) fn find(&self, path: &Path) -> Whereabouts {
        self.table().get(path).cloned().unwrap_or(Whereabouts::Moving)
    }

    /// Notes where an export is.
    pub(super) fn note(&self, path: &Path, place: Whereabouts) {
        self.table().insert(path.to_owned(), place);
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Whereabouts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
