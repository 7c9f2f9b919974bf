use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::limits::SHARDS;
use crate::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Locks; a thread that died with the lock left data that is whole, for none of it is changed
/// before everything that can fail has been done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that has its own key.
pub(crate) trait Keyed {
    /// The key. It never changes.
    type Key: Hash + Eq;

    fn key(&self) -> &Self::Key;
}

/// Shared values that are found by their keys. The table is divided into parts with one lock each;
/// a lock is held for a moment only, and no other lock is taken under it. Keys are hashed with a
/// random secret of each table, so that a user cannot make many files that collide. A key is stored
/// only in its value, because the keys of files are long.
pub(crate) struct Table<V, S = RandomState> {
    parts: Vec<Part<V>>,
    hasher: S,
}

type Part<V> = RwLock<HashTable<Arc<V>>>;

impl<V: Keyed, S: BuildHasher + Default> Table<V, S> {
    pub(crate) fn new() -> Self {
        let parts = (0..SHARDS).map(|_| RwLock::new(HashTable::new())).collect();
        Self { parts, hasher: S::default() }
    }

    pub(crate) fn get(&self, key: &V::Key) -> Option<Arc<V>> {
        let (hash, part) = self.part(key)?;
        let part = part.read().unwrap_or_else(PoisonError::into_inner);
        part.find(hash, is(key)).map(Arc::clone)
    }

    /// The value of a key; if there is none, the one that is made.
    pub(crate) fn get_or_insert(&self, key: &V::Key, make: impl FnOnce() -> V) -> Option<Arc<V>> {
        if let Some(found) = self.get(key) {
            return Some(found);
        }
        let (hash, part) = self.part(key)?;
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        let entry = part.entry(hash, is(key), self.hash());
        Some(Arc::clone(entry.or_insert_with(|| Arc::new(make())).get()))
    }

    /// Puts a value in the place of the one that has its key.
    pub(crate) fn insert(&self, value: Arc<V>) {
        let Some((hash, part)) = self.part(value.key()) else { return };
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        match part.find_mut(hash, is(value.key())) {
            Some(known) => *known = value,
            None => drop(part.insert_unique(hash, value, self.hash())),
        }
    }

    /// Takes a value out that the caller holds, if it is still there and `idle`; false if it is and
    /// somebody else holds it, so that it must stay for now.
    pub(crate) fn remove_idle(&self, held: &Arc<V>, idle: impl FnOnce(&V) -> bool) -> bool {
        let Some((hash, part)) = self.part(held.key()) else { return true };
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(known) = part.find_entry(hash, |value| Arc::ptr_eq(value, held)) else {
            return true;
        };
        if !idle(known.get()) {
            return true;
        }
        // Two: this table, and the caller.
        let removable = Arc::strong_count(known.get()) <= 2;
        if removable {
            known.remove();
        }
        removable
    }

    pub(crate) fn remove(&self, key: &V::Key) -> Option<Arc<V>> {
        let (hash, part) = self.part(key)?;
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        part.find_entry(hash, is(key)).ok().map(|known| known.remove().0)
    }

    /// All that are there at some moment of the call.
    pub(crate) fn all(&self) -> Vec<Arc<V>> {
        let values = |part: &Part<V>| {
            let part = part.read().unwrap_or_else(PoisonError::into_inner);
            part.iter().map(Arc::clone).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(values).collect()
    }

    /// Shows one to `look`, its part locked meanwhile.
    pub(crate) fn look<R>(&self, key: &V::Key, look: impl FnOnce(&V) -> R) -> Option<R> {
        let (hash, part) = self.part(key)?;
        let part = part.read().unwrap_or_else(PoisonError::into_inner);
        part.find(hash, is(key)).map(|value| look(value))
    }

    /// Shows all to `each`, part by part, each part locked meanwhile.
    pub(crate) fn each(&self, mut each: impl FnMut(&V)) {
        for part in &self.parts {
            let part = part.read().unwrap_or_else(PoisonError::into_inner);
            part.iter().for_each(|value| each(value));
        }
    }

    pub(crate) fn len(&self) -> usize {
        let len = |part: &Part<V>| part.read().unwrap_or_else(PoisonError::into_inner).len();
        self.parts.iter().map(len).sum()
    }

    /// The hash of a key, and the part that it belongs to.
    fn part(&self, key: &V::Key) -> Option<(u64, &Part<V>)> {
        let hash = self.hasher.hash_one(key);
        // The map of a part looks at the lowest and the highest bits.
        Some((hash, self.parts.get((hash >> 32) as usize % SHARDS)?))
    }

    fn hash(&self) -> impl Fn(&Arc<V>) -> u64 + '_ {
        |value| self.hasher.hash_one(value.key())
    }
}

fn is<V: Keyed>(key: &V::Key) -> impl FnMut(&Arc<V>) -> bool + '_ {
    move |value| value.key() == key
}
