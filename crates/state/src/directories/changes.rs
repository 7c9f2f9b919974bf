//! Changes of directories that are under way. A directory is not delegated meanwhile: its holder
//! would not hear of a change that was cleared before the grant and made after it.

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use crate::FileKey;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Number of counters. Two directories share one by chance; then one is not delegated while the
/// other is changed.
const COUNTERS: usize = 256;

/// A counter on a cache line of its own: changes of other directories do not slow it down.
#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicUsize);

/// The numbers of changes that are under way.
pub(crate) struct Changes {
    first: Counter,
    others: Vec<Counter>,
    hasher: RandomState,
    /// Held while a change is made and noted, so that holders are notified in the order in which
    /// changes were made.
    turns: Vec<Mutex<()>>,
}

impl Default for Changes {
    fn default() -> Self {
        let others = (1..COUNTERS).map(|_| Counter::default()).collect();
        let turns = (0..COUNTERS).map(|_| Mutex::new(())).collect();
        Self { first: Counter::default(), others, hasher: RandomState::default(), turns }
    }
}

impl Changes {
    pub(crate) fn of(&self, directory: &FileKey) -> &AtomicUsize {
        &self.others.get(self.place(directory)).unwrap_or(&self.first).0
    }

    fn place(&self, directory: &FileKey) -> usize {
        self.hasher.hash_one(directory) as usize % COUNTERS
    }

    /// Waits for the turn of a change in one or two directories. Two turns are taken in the same
    /// order by all.
    pub(crate) fn turns(
        &self,
        (first, second): (&FileKey, Option<&FileKey>),
    ) -> Vec<MutexGuard<'_, ()>> {
        let mut places: Vec<usize> =
            std::iter::once(first).chain(second).map(|key| self.place(key)).collect();
        places.sort_unstable();
        places.dedup();
        let turns = places.into_iter().filter_map(|place| self.turns.get(place));
        turns.map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Returns whether a change of a directory may be under way.
    pub(crate) fn are_under_way(&self, directory: &FileKey) -> bool {
        self.of(directory).load(Ordering::SeqCst) > 0
    }
}
