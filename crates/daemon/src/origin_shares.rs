//! Limits the places that each origin has of a limited number.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_state::Origin;

/// A limited number of places that origins share. An origin may take at most as many as remain free
/// for all others.
pub(crate) struct OriginShares {
    most: usize,
    taken: Mutex<TakenPlaces>,
}

/// The places that are taken.
#[derive(Default)]
struct TakenPlaces {
    all: usize,
    /// Those of each origin that has any.
    own: HashMap<Origin, usize>,
}

impl OriginShares {
    /// There are `most` places.
    pub(crate) fn at_most(most: usize) -> Self {
        Self { most, taken: Mutex::default() }
    }

    /// Gives an origin one more place, in any case if `always`; returns false if it has as many as
    /// it may.
    pub(crate) fn enter(&self, origin: Origin, always: bool) -> bool {
        let mut taken = self.lock();
        let own = taken.own.get(&origin).copied().unwrap_or_default();
        let has_room = always || own < self.most.saturating_sub(taken.all);
        if has_room {
            taken.own.insert(origin, own + 1);
            taken.all += 1;
        }
        has_room
    }

    /// Undoes [`OriginShares::enter`] for one place.
    pub(crate) fn leave(&self, origin: Origin) {
        let mut taken = self.lock();
        let Some(own) = taken.own.get_mut(&origin) else { return };
        *own -= 1;
        if *own == 0 {
            taken.own.remove(&origin);
        }
        taken.all -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, TakenPlaces> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINS: [Origin; 3] =
        [Origin::from_bytes([1; 16]), Origin::from_bytes([2; 16]), Origin::from_bytes([3; 16])];

    #[test]
    fn an_origin_leaves_as_many_places_as_it_has() {
        let places = OriginShares::at_most(100);
        let taken = |origin| (0..).take_while(|_| places.enter(origin, false)).count();
        assert_eq!(ORIGINS.map(taken), [50, 25, 13]);
        assert!(ORIGINS.iter().all(|origin| !places.enter(*origin, false)));
        assert!(places.enter(ORIGINS[2], true));
        (0..25).for_each(|_| places.leave(ORIGINS[1]));
        assert!(places.enter(ORIGINS[2], false));
    }

    #[test]
    fn an_origin_without_places_is_not_stored() {
        let places = OriginShares::at_most(2);
        assert!(places.enter(ORIGINS[0], false));
        assert!(places.enter(ORIGINS[1], false));
        assert!(!places.enter(ORIGINS[2], false));
        places.leave(ORIGINS[0]);
        places.leave(ORIGINS[1]);
        assert!(places.lock().own.is_empty());
    }
}
