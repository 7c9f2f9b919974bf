use std::sync::atomic::{AtomicU32, Ordering};

use crate::passthrough::limits::GHOSTS_MAX;

/// Hashes of the handles of objects that were looked up lately while there was no room for them.
/// Each has one place in the table, where a newer one replaces an older one.
#[derive(Debug)]
pub(crate) struct GhostCache(Box<[AtomicU32]>);

impl GhostCache {
    /// Makes a table with as many places as objects may be open. A walk through more objects than
    /// that finds none of them in its next round.
    pub(crate) fn new(open_max: usize) -> Self {
        let places = open_max.clamp(1, GHOSTS_MAX);
        Self((0..places).map(|_| AtomicU32::new(0)).collect())
    }

    /// Returns whether an object of this hash was looked up a short while ago, and remembers it.
    pub(crate) fn again(&self, hash: u64) -> bool {
        let Some(place) = self.0.get(hash as usize % self.0.len()) else { return true };
        // The mark of an object is never 0, which is that of an empty place.
        let mark = (hash >> 32) as u32 | 1;
        place.swap(mark, Ordering::Relaxed) == mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_asked_for_again_soon_is_known_and_one_after_many_others_is_not() {
        let passing = GhostCache::new(100);
        let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert!(!passing.again(hash(1)));
        assert!(passing.again(hash(1)));
        let many = 1_000;
        let known = (0..2 * many).filter(|number| passing.again(hash(number % many))).count();
        assert!(known < 10, "{known} of {many} are known");
    }
}
