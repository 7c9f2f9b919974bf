use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::FileKey;
use crate::limits::CHANGED_OBJECTS_MAX;

/// Number of moments of the last changes. Two objects share one by chance; then a change of one
/// counts as a change of the other.
const MOMENTS: usize = 1024;

/// Objects whose attributes callers have changed. They are noted only while somebody watches; the
/// cost of a change is one load otherwise.
#[derive(Debug)]
pub struct ChangedObjects {
    watchers: AtomicUsize,
    clock: AtomicU64,
    /// For objects of each hash, the moment of the last change.
    moments: Vec<AtomicU64>,
    hasher: RandomState,
    changes: Mutex<Vec<ObjectChange>>,
    waiting: AtomicUsize,
}

/// A change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectChange {
    /// The object.
    pub object: FileKey,
    /// The number of the client that changed it, if the client is known.
    pub client: Option<u64>,
}

impl Default for ChangedObjects {
    fn default() -> Self {
        Self {
            watchers: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            moments: (0..MOMENTS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            changes: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }
}

impl ChangedObjects {
    /// Notes that somebody watches from now on, beside others.
    pub fn watch(&self) {
        self.watchers.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that one of those who watch has ended.
    pub fn unwatch(&self) {
        self.watchers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns whether anybody watches.
    #[inline]
    #[must_use]
    pub fn are_watched(&self) -> bool {
        self.watchers.load(Ordering::SeqCst) > 0
    }

    /// Notes a change. It must be called after the change was made, whether it succeeded or not.
    pub fn note(&self, change: ObjectChange) {
        let moment = self.clock.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(last) = self.moments.get(self.place(&change.object)) {
            last.fetch_max(moment, Ordering::SeqCst);
        }
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        // One more than the bound shows that there were too many.
        if changes.last() != Some(&change) && changes.len() <= CHANGED_OBJECTS_MAX {
            changes.push(change);
        }
        self.waiting.store(changes.len(), Ordering::SeqCst);
    }

    /// Returns the present moment. It must be asked before attributes are read.
    #[must_use]
    pub fn moment(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    /// Returns whether an object may have been changed after a moment.
    #[must_use]
    pub fn has_changed_since(&self, object: &FileKey, moment: u64) -> bool {
        let last = self.moments.get(self.place(object));
        last.is_some_and(|last| last.load(Ordering::SeqCst) > moment)
    }

    /// Returns whether changes were noted and not taken yet. The cost is one load.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0
    }

    /// Takes the changes that were noted; `None` if there were too many to note them all.
    #[must_use]
    pub fn take(&self) -> Option<Vec<ObjectChange>> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.store(0, Ordering::SeqCst);
        let taken = std::mem::take(&mut *changes);
        (taken.len() <= CHANGED_OBJECTS_MAX).then_some(taken)
    }

    fn place(&self, object: &FileKey) -> usize {
        self.hasher.hash_one(object) as usize % MOMENTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handle;

    fn change(number: usize) -> ObjectChange {
        let handle = Handle::new(&number.to_be_bytes()).unwrap();
        ObjectChange { object: FileKey { volume: 1, export: 1, handle }, client: Some(1) }
    }

    #[test]
    fn changes_are_taken_once_and_a_repeated_one_is_one() {
        let changes = ChangedObjects::default();
        assert!(changes.is_empty() && !changes.are_watched());
        changes.watch();
        assert!(changes.are_watched());
        let before = changes.moment();
        assert!(!changes.has_changed_since(&change(1).object, before));
        (0..3).for_each(|_| changes.note(change(1)));
        assert!(changes.has_changed_since(&change(1).object, before));
        assert!(!changes.has_changed_since(&change(1).object, changes.moment()));
        assert_eq!(changes.take(), Some(vec![change(1)]));
        assert_eq!(changes.take(), Some(Vec::new()));
        changes.unwatch();
        assert!(changes.is_empty() && !changes.are_watched());
    }

    #[test]
    fn too_many_changes_are_told_from_all_of_them() {
        let changes = ChangedObjects::default();
        (0..CHANGED_OBJECTS_MAX).for_each(|number| changes.note(change(number)));
        assert_eq!(changes.take().map(|taken| taken.len()), Some(CHANGED_OBJECTS_MAX));
        (0..CHANGED_OBJECTS_MAX + 9).for_each(|number| changes.note(change(number)));
        assert_eq!(changes.take(), None);
        assert_eq!(changes.take(), Some(Vec::new()));
    }
}
