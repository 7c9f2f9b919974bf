use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use comity_vfs::Handle;
use quick_cache::sync::Cache;

use crate::passthrough::limits::{PATHS_MAX, SEARCH_SHARE};

/// The directory and the name at which an object was last seen.
#[derive(Debug, Clone)]
pub(crate) struct KnownPath {
    pub(crate) dir: Handle,
    pub(crate) name: Arc<CStr>,
}

/// The paths at which objects were last seen, for volumes whose handles the kernel does not open
/// for this process.
#[derive(Debug)]
pub(crate) struct PathCache(Option<KnownPaths>);

#[derive(Debug)]
struct KnownPaths {
    paths: Cache<Handle, KnownPath>,
    /// Objects that lost their last name through this server and need not be searched for.
    gone: Cache<Handle, ()>,
    /// The time from which the tree may be searched again.
    next_search: Mutex<Option<Instant>>,
}

impl PathCache {
    /// Keeps paths if `needed`.
    pub(crate) fn new(needed: bool) -> Self {
        Self(needed.then(|| KnownPaths {
            paths: Cache::new(PATHS_MAX),
            gone: Cache::new(PATHS_MAX),
            next_search: Mutex::new(None),
        }))
    }

    /// Returns whether paths are kept.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Remembers that an object was seen as `name` in `dir`.
    pub(crate) fn learn(&self, handle: &Handle, dir: &Handle, name: &CStr) {
        let Some(kept) = &self.0 else { return };
        let known = kept.paths.get(handle);
        if known.is_none_or(|place| place.dir != *dir || *place.name != *name) {
            kept.paths.insert(*handle, KnownPath { dir: *dir, name: name.into() });
            // A search may have missed the object while others moved it.
            kept.gone.remove(handle);
        }
    }

    /// Remembers that an object was removed.
    pub(crate) fn mark_gone(&self, handle: &Handle) {
        if let Some(kept) = &self.0 {
            kept.paths.remove(handle);
            kept.gone.insert(*handle, ());
        }
    }

    /// Returns whether an object is known to be removed.
    pub(crate) fn is_gone(&self, handle: &Handle) -> bool {
        self.0.as_ref().is_some_and(|kept| kept.gone.get(handle).is_some())
    }

    /// Returns the directory and the name at which an object was last seen.
    pub(crate) fn of(&self, handle: &Handle) -> Option<KnownPath> {
        self.0.as_ref()?.paths.get(handle)
    }

    /// Allows a search of the tree now, if no other one runs and the last one is long enough ago.
    pub(crate) fn begin_search(&self) -> Option<Search<'_>> {
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

/// A running search. At its end, a pause before the next one begins whose length is in proportion
/// to the time that it took.
pub(crate) struct Search<'a> {
    next: MutexGuard<'a, Option<Instant>>,
    begun: Instant,
}

/// The longest pause between two searches: a client that gets DELAY repeats its call for a while.
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
    fn an_object_that_is_seen_again_is_not_gone() {
        let places = PathCache::new(true);
        let [dir, file] = [&b"dir"[..], b"file"].map(|bytes| Handle::new(bytes).unwrap());
        places.learn(&file, &dir, c"here");
        places.mark_gone(&file);
        assert!(places.is_gone(&file));
        places.learn(&file, &dir, c"here");
        assert!(!places.is_gone(&file));
    }
}
