//! Names that are known, by caller: a name may be hidden from some.

use std::sync::Arc;

use comity_vfs::{Handle, Name};
use quick_cache::sync::Cache;

use crate::limits::{CALLERS_OF_A_NAME_MAX, NAMES_MAX};
use crate::verdict_cache::CallerId;

type NameKey = (Handle, Box<[u8]>);

/// Names and what they stand for, as long as their directory has not been changed by others.
pub(crate) struct NameCache {
    known: Cache<NameKey, Arc<[KnownName]>>,
}

#[derive(Debug, Clone, Copy)]
struct KnownName {
    caller: CallerId,
    /// `None` if there is no such name.
    node: Option<Handle>,
    /// The directory's generation when the name was found.
    generation: u64,
}

impl NameCache {
    pub(crate) fn new() -> Self {
        Self { known: Cache::new(NAMES_MAX) }
    }

    /// The object of a name in a directory of this generation; `Some(None)` if it is known that
    /// there is none.
    pub(crate) fn get(
        &self,
        caller: CallerId,
        (dir, name): (&Handle, Name<'_>),
        generation: u64,
    ) -> Option<Option<Handle>> {
        let known = self.known.get(&key(dir, name))?;
        let mut names = known.iter();
        let found = names.find(|known| known.caller == caller && known.generation == generation)?;
        Some(found.node)
    }

    /// Notes what a name stands for.
    pub(crate) fn note(
        &self,
        caller: CallerId,
        (dir, name): (&Handle, Name<'_>),
        generation: u64,
        node: Option<Handle>,
    ) {
        let key = key(dir, name);
        let before = self.known.get(&key);
        let others = before.iter().flat_map(|names| names.iter());
        let others =
            others.filter(|known| known.caller != caller && known.generation == generation);
        let names = std::iter::once(KnownName { caller, node, generation })
            .chain(others.copied())
            .take(CALLERS_OF_A_NAME_MAX);
        self.known.insert(key, names.collect());
    }

    /// Changes what a name stands for, for those callers who know the name.
    pub(crate) fn replace(
        &self,
        (dir, name): (&Handle, Name<'_>),
        generation: u64,
        node: Option<Handle>,
    ) {
        let key = key(dir, name);
        let Some(known) = self.known.get(&key) else { return };
        let current = known.iter().filter(|known| known.generation == generation);
        let names: Arc<[KnownName]> = current.map(|known| KnownName { node, ..*known }).collect();
        self.known.insert(key, names);
    }

    /// Forgets what a name stands for, for all callers.
    pub(crate) fn forget(&self, (dir, name): (&Handle, Name<'_>)) {
        self.known.remove(&key(dir, name));
    }
}

fn key(dir: &Handle, name: Name<'_>) -> NameKey {
    (*dir, name.bytes().into())
}
