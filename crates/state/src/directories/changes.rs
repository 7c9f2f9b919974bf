//! Changes of directories that are under way. A directory is not delegated meanwhile: its holder
//! would not hear of a change that was cleared before the grant and made after it.

use std::hash::BuildHasher;

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
}

impl Default for Changes {
    fn default() -> Self {
        let others = (1..COUNTERS).map(|_| Counter::default()).collect();
        Self { first: Counter::default(), others, hasher: RandomState::default() }
    }
}

impl Changes {
    pub(crate) fn of(&self, directory: &FileKey) -> &AtomicUsize {
        let at = self.hasher.hash_one(directory) as usize % COUNTERS;
        &self.others.get(at).unwrap_or(&self.first).0
    }

    /// Returns whether a change of a directory may be under way.
    pub(crate) fn are_under_way(&self, directory: &FileKey) -> bool {
        self.of(directory).load(Ordering::SeqCst) > 0
    }
}
