use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use comity_vfs::Handle;
use quick_cache::sync::Cache;

use super::limits::{PLACES_MAX, SEARCH_SHARE};

/// Where an object was last seen.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) dir: Handle,
    pub(super) name: Arc<CStr>,
}

/// Where objects were last seen, for volumes whose handles the kernel does not open for us.
#[derive(Debug)]
pub(super) struct Places(Option<Kept>);

#[derive(Debug)]
struct Kept {
    places: Cache<Handle, Place>,
    /// Objects that lost their last name through this server: there is no need to search for them.
    gone: Cache<Handle, ()>,
    /// When the tree may be searched again.
    next_search: Mutex<Option<Instant>>,
}

impl Places {
    /// Keeps places if `needed`.
    pub(super) fn new(needed: bool) -> Self {
        Self(needed.then(|| Kept {
            places: Cache::new(PLACES_MAX),
            gone: Cache::new(PLACES_MAX),
            next_search: Mutex::new(None),
        }))
    }

    /// Whether places are kept.
    pub(super) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Remembers that an object was seen as `name` in `dir`.
    pub(super) fn learn(&self, handle: &Handle, dir: &Handle, name: &CStr) {
        let Some(kept) = &self.0 else { return };
        let known = kept.places.get(handle);
        if known.is_none_or(|place| place.dir != *dir || *place.name != *name) {
            kept.places.insert(*handle, Place { dir: *dir, name: name.into() });
            // A search may have missed it while others moved it.
            kept.gone.remove(handle);
        }
    }

    /// Remembers that an object is gone for good.
    pub(super) fn bury(&self, handle: &Handle) {
        if let Some(kept) = &self.0 {
            kept.places.remove(handle);
            kept.gone.insert(*handle, ());
        }
    }

    /// Whether an object is known to be gone.
    pub(super) fn is_gone(&self, handle: &Handle) -> bool {
        self.0.as_ref().is_some_and(|kept| kept.gone.get(handle).is_some())
    }

    /// Where an object was last seen.
    pub(super) fn of(&self, handle: &Handle) -> Option<Place> {
        self.0.as_ref()?.places.get(handle)
    }

    /// Leave to search the tree now, if no other search runs and the last is long enough ago.
    pub(super) fn begin_search(&self) -> Option<Search<'_>> {
        let next = match self.0.as_ref()?.next_search.try_lock() {
            Ok(next) => next,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return None,
        };
        let now = Instant::now();
        let early = next.is_some_and(|next| now < next);
        (!early).then_some(Search { next, begun: now })
    }
}

/// A search that is under way; when it ends, the next has to wait in proportion to what it took.
pub(super) struct Search<'a> {
    next: MutexGuard<'a, Option<Instant>>,
    begun: Instant,
}

/// The longest wait between two searches: a client that is told to wait asks again for a while.
const SEARCH_PAUSE_MAX: Duration = Duration::from_secs(60);

impl Drop for Search<'_> {
    fn drop(&mut self) {
        let pause = self.begun.elapsed().saturating_mul(SEARCH_SHARE).min(SEARCH_PAUSE_MAX);
        *self.next = Some(Instant::now() + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_and_is_seen_again_is_not_gone() {
        let places = Places::new(true);
        let [dir, file] = [&b"dir"[..], b"file"].map(|bytes| Handle::new(bytes).unwrap());
        places.learn(&file, &dir, c"here");
        places.bury(&file);
        assert!(places.is_gone(&file));
        places.learn(&file, &dir, c"here");
        assert!(!places.is_gone(&file));
    }
}
