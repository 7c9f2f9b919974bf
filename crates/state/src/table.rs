use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::limits::SHARDS;
use crate::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Locks; a thread that died with the lock left data that is whole, for none of it is changed
/// before everything that can fail has been done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A map from keys to shared values in parts, each behind a lock of its own that is held for a
/// moment only and under which no other is taken. Keys are hashed with a secret that each table
/// draws for itself: who makes files cannot make many that meet.
pub(crate) struct Table<K, V, S = RandomState> {
    parts: Vec<Part<K, V, S>>,
    hasher: S,
}

type Part<K, V, S> = RwLock<HashMap<K, Arc<V>, S>>;

impl<K: Hash + Eq + Clone, V, S: BuildHasher + Default> Table<K, V, S> {
    pub(crate) fn new() -> Self {
        let parts = (0..SHARDS).map(|_| RwLock::default()).collect();
        Self { parts, hasher: S::default() }
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        let part = self.part(key)?.read().unwrap_or_else(PoisonError::into_inner);
        part.get(key).map(Arc::clone)
    }

    pub(crate) fn get_or_insert(&self, key: &K, make: impl FnOnce() -> V) -> Option<Arc<V>> {
        if let Some(found) = self.get(key) {
            return Some(found);
        }
        let mut part = self.part(key)?.write().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(part.entry(key.clone()).or_insert_with(|| Arc::new(make()))))
    }

    pub(crate) fn insert(&self, key: K, value: Arc<V>) {
        if let Some(part) = self.part(&key) {
            part.write().unwrap_or_else(PoisonError::into_inner).insert(key, value);
        }
    }

    /// Takes a value out that the caller holds, if it is still there and `idle`; false if it is and
    /// somebody else holds it, so that it must stay for now.
    pub(crate) fn remove_idle(
        &self,
        (key, held): (&K, &Arc<V>),
        idle: impl FnOnce(&V) -> bool,
    ) -> bool {
        let Some(part) = self.part(key) else { return true };
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        let it = part.get(key).filter(|value| Arc::ptr_eq(value, held) && idle(value));
        let Some(value) = it else { return true };
        // Two: this table, and the caller.
        let removable = Arc::strong_count(value) <= 2;
        if removable {
            part.remove(key);
        }
        removable
    }

    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        self.part(key)?.write().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    /// All that are there at some moment of the call.
    pub(crate) fn all(&self) -> Vec<Arc<V>> {
        let values = |part: &Part<K, V, S>| {
            let part = part.read().unwrap_or_else(PoisonError::into_inner);
            part.values().map(Arc::clone).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(values).collect()
    }

    /// Shows one to `look`, its part locked meanwhile.
    pub(crate) fn look<R>(&self, key: &K, look: impl FnOnce(&V) -> R) -> Option<R> {
        let part = self.part(key)?.read().unwrap_or_else(PoisonError::into_inner);
        part.get(key).map(|value| look(value))
    }

    /// Shows all to `each`, part by part, each part locked meanwhile.
    pub(crate) fn each(&self, mut each: impl FnMut(&V)) {
        for part in &self.parts {
            let part = part.read().unwrap_or_else(PoisonError::into_inner);
            part.values().for_each(|value| each(value));
        }
    }

    pub(crate) fn len(&self) -> usize {
        let len = |part: &Part<K, V, S>| part.read().unwrap_or_else(PoisonError::into_inner).len();
        self.parts.iter().map(len).sum()
    }

    fn part<Q: Hash + ?Sized>(&self, key: &Q) -> Option<&Part<K, V, S>> {
        // The map of a part looks at the lowest and the highest bits.
        self.parts.get((self.hasher.hash_one(key) >> 32) as usize % SHARDS)
    }
}
