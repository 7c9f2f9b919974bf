//! The places of one object, as far as they are known.

use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_vfs::Handle;

use crate::Moment;
use crate::limits::DIRECTORIES_PER_FILE_MAX;

/// The names by which clients looked up an object, and the directories that contain it.
///
/// The names never change: a further name makes another value. Directories that were found without
/// it then stay behind.
#[derive(Debug, Default)]
pub(crate) struct ObjectPlaces {
    latest: Option<NameInDirectory>,
    earlier: Vec<NameInDirectory>,
    above: Mutex<Option<Above>>,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NameInDirectory {
    dir: Handle,
    name: Box<[u8]>,
}

/// The directories that contain an object, and until when that is valid. Nearly all objects are in
/// one directory, which is stored without an allocation.
#[derive(Debug, Clone)]
pub(crate) struct Above {
    first: Option<Handle>,
    others: Vec<Handle>,
    pub(crate) until: Moment,
    moves: u64,
}

impl ObjectPlaces {
    /// Directories of an object of which no name is known.
    pub(crate) fn above_only(above: Above) -> Self {
        Self { above: Mutex::new(Some(above)), ..Self::default() }
    }

    /// Adds a name to the known ones; the oldest is forgotten if there are too many.
    pub(crate) fn with(dir: &Handle, name: &[u8], known: Option<&Self>) -> Self {
        let latest = Some(NameInDirectory { dir: *dir, name: name.into() });
        let earlier = known.into_iter().flat_map(Self::all);
        let earlier = earlier.take(DIRECTORIES_PER_FILE_MAX - 1).cloned().collect();
        Self { latest, earlier, above: Mutex::default() }
    }

    /// Returns whether a name is known.
    pub(crate) fn has(&self, dir: &Handle, name: &[u8]) -> bool {
        self.names().any(|known| known == (dir, name))
    }

    /// Returns how many names are known.
    pub(crate) fn count(&self) -> usize {
        self.all().count()
    }

    /// The directories and names, the latest first.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&Handle, &[u8])> {
        self.all().map(|known| (&known.dir, &*known.name))
    }

    fn all(&self) -> impl Iterator<Item = &NameInDirectory> {
        self.latest.iter().chain(&self.earlier)
    }

    /// The directories that contain the object, if that is still valid after this number of moves.
    pub(crate) fn above(&self, now: Moment, moves: u64) -> Option<Above> {
        self.lock().as_ref().filter(|above| above.holds(now, moves)).cloned()
    }

    /// Returns whether the directories are known, and still valid after this number of moves.
    pub(crate) fn has_above(&self, now: Moment, moves: u64) -> bool {
        self.lock().as_ref().is_some_and(|above| above.holds(now, moves))
    }

    pub(crate) fn set_above(&self, above: Above) {
        *self.lock() = Some(above);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Above>> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Above {
    /// Directories that were found after this number of moves.
    pub(crate) fn new(directories: &[Handle], until: Moment, moves: u64) -> Self {
        let mut all = directories.iter().copied();
        Self { first: all.next(), others: all.collect(), until, moves }
    }

    /// The same for one directory.
    pub(crate) const fn one(dir: Handle, until: Moment, moves: u64) -> Self {
        Self { first: Some(dir), others: Vec::new(), until, moves }
    }

    fn holds(&self, now: Moment, moves: u64) -> bool {
        now < self.until && self.moves == moves
    }

    /// The directories.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &Handle> {
        self.first.iter().chain(&self.others)
    }

    /// The directory, if there is only one.
    pub(crate) fn only(&self) -> Option<&Handle> {
        self.first.as_ref().filter(|_| self.others.is_empty())
    }
}
