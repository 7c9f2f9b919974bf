//! The number of files that are locked against programs on the server, for each origin.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use comity_state::Origin;

/// The files that each origin was the first to lock. Each keeps descriptors open, of which there
/// are few, so an origin may have as many as it leaves for all others.
pub(crate) struct LockedFiles {
    most: usize,
    counts: Mutex<HashMap<Origin, usize>>,
}

impl LockedFiles {
    /// At most `most` files may be locked at once.
    pub(crate) fn at_most(most: usize) -> Self {
        Self { most, counts: Mutex::default() }
    }

    /// Counts one more file for an origin, in any case if `always`; returns false if it has as many
    /// as it may.
    pub(crate) fn enter(&self, origin: Origin, always: bool) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let own = counts.entry(origin).or_default();
        let has_room = always || *own < self.most.saturating_sub(all);
        *own += usize::from(has_room);
        if *own == 0 {
            counts.remove(&origin);
        }
        has_room
    }

    /// Undoes [`LockedFiles::enter`] for one file.
    pub(crate) fn leave(&self, origin: Origin) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = counts.get_mut(&origin) {
            *own -= 1;
            if *own == 0 {
                counts.remove(&origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINS: [Origin; 3] =
        [Origin::from_bytes([1; 16]), Origin::from_bytes([2; 16]), Origin::from_bytes([3; 16])];

    #[test]
    fn an_origin_leaves_as_many_files_as_it_has() {
        let files = LockedFiles::at_most(100);
        let taken = |origin| (0..).take_while(|_| files.enter(origin, false)).count();
        assert_eq!(ORIGINS.map(taken), [50, 25, 13]);
        assert!(ORIGINS.iter().all(|origin| !files.enter(*origin, false)));
        assert!(files.enter(ORIGINS[2], true));
        (0..25).for_each(|_| files.leave(ORIGINS[1]));
        assert!(files.enter(ORIGINS[2], false));
    }

    #[test]
    fn an_origin_without_locked_files_is_not_stored() {
        let files = LockedFiles::at_most(2);
        assert!(files.enter(ORIGINS[0], false));
        assert!(files.enter(ORIGINS[1], false));
        assert!(!files.enter(ORIGINS[2], false));
        files.leave(ORIGINS[0]);
        files.leave(ORIGINS[1]);
        assert!(files.counts.lock().unwrap().is_empty());
    }
}
