use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::limits::SHARDS;
use crate::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Locks a mutex, even if a thread panicked while it held it. The data is consistent then, because
/// every function does all that can fail before it changes anything.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that contains its own key.
pub(crate) trait Keyed {
    /// The type of the key, which never changes.
    type Key: Hash + Eq;

    fn key(&self) -> &Self::Key;
}

/// Shared values by their keys. The table is divided into parts with one lock each. A lock is held
/// for a moment only, and no other lock is taken under it. Keys are hashed with a random secret of
/// each table, so that a user cannot make many files whose keys collide. A key is stored only in
/// its value, because the keys of files are long.
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

    /// Returns the value of a key; if there is none, stores the value that `make` returns.
    pub(crate) fn get_or_insert(&self, key: &V::Key, make: impl FnOnce() -> V) -> Option<Arc<V>> {
        if let Some(found) = self.get(key) {
            return Some(found);
        }
        let (hash, part) = self.part(key)?;
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        let entry = part.entry(hash, is(key), self.hash());
        Some(Arc::clone(entry.or_insert_with(|| Arc::new(make())).get()))
    }

    /// Stores a value, and replaces one with the same key.
    pub(crate) fn insert(&self, value: Arc<V>) {
        let Some((hash, part)) = self.part(value.key()) else { return };
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        match part.find_mut(hash, is(value.key())) {
            Some(known) => *known = value,
            None => drop(part.insert_unique(hash, value, self.hash())),
        }
    }

    /// Removes a value that the caller holds, if it is `idle`. Returns false if another thread
    /// holds it, so that it must stay for now.
    pub(crate) fn remove_idle(&self, held: &Arc<V>, idle: impl FnOnce(&V) -> bool) -> bool {
        let Some((hash, part)) = self.part(held.key()) else { return true };
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(known) = part.find_entry(hash, |value| Arc::ptr_eq(value, held)) else {
            return true;
        };
        if !idle(known.get()) {
            return true;
        }
        // The two references are those of this table and of the caller.
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

    /// Returns all values. A value that is added or removed meanwhile may be missing or present.
    pub(crate) fn all(&self) -> Vec<Arc<V>> {
        let values = |part: &Part<V>| {
            let part = part.read().unwrap_or_else(PoisonError::into_inner);
            part.iter().map(Arc::clone).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(values).collect()
    }

    /// Calls `look` with a value, while its part of the table is locked.
    pub(crate) fn look<R>(&self, key: &V::Key, look: impl FnOnce(&V) -> R) -> Option<R> {
        let (hash, part) = self.part(key)?;
        let part = part.read().unwrap_or_else(PoisonError::into_inner);
        part.find(hash, is(key)).map(|value| look(value))
    }

    /// Calls `each` with all values, while the part of each is locked.
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

    /// Returns the hash of a key, and its part of the table.
    fn part(&self, key: &V::Key) -> Option<(u64, &Part<V>)> {
        let hash = self.hasher.hash_one(key);
        // The map of a part uses the lowest and the highest bits, so the middle ones choose the
        // part.
        Some((hash, self.parts.get((hash >> 32) as usize % SHARDS)?))
    }

    fn hash(&self) -> impl Fn(&Arc<V>) -> u64 + '_ {
        |value| self.hasher.hash_one(value.key())
    }
}

fn is<V: Keyed>(key: &V::Key) -> impl FnMut(&Arc<V>) -> bool + '_ {
    move |value| value.key() == key
}
