//! Cached names, by caller: the server may hide a name from some callers.

use std::sync::Arc;

use comity_vfs::{Handle, Name};
use quick_cache::sync::Cache;

use crate::limits::{CALLERS_OF_A_NAME_MAX, NAMES_MAX};
use crate::verdict_cache::CallerId;

type NameKey = (Handle, Box<[u8]>);

/// The objects of names, valid while no other client has changed their directory.
pub(crate) struct NameCache {
    known: Cache<NameKey, Arc<[KnownName]>>,
}

#[derive(Debug, Clone, Copy)]
struct KnownName {
    caller: CallerId,
    /// The object; `None` if the name is known to be missing.
    node: Option<Handle>,
    /// The directory's generation when the name was looked up.
    generation: u64,
}

impl NameCache {
    pub(crate) fn new() -> Self {
        Self { known: Cache::new(NAMES_MAX) }
    }

    /// The object of a name, if it is cached for this generation of the directory; `Some(None)` if
    /// the name is known to be missing.
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

    /// Stores the object of a name.
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

    /// Replaces the object of a name, for the callers that know the name.
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

    /// Forgets a name for all callers.
    pub(crate) fn forget(&self, (dir, name): (&Handle, Name<'_>)) {
        self.known.remove(&key(dir, name));
    }
}

fn key(dir: &Handle, name: Name<'_>) -> NameKey {
    (*dir, name.bytes().into())
}
