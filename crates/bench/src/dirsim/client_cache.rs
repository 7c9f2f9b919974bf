//! The directories that a client remembers.

use std::collections::{BTreeMap, HashMap};

/// A client's knowledge of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKnowledge {
    /// The name was looked up: the value says whether it exists.
    Name(bool),
    /// The name follows from a listing, which was made after this many changes of the directory.
    Listing(u64),
}

/// The memory that a client has of a directory.
#[derive(Debug, Clone, Default)]
pub(super) struct CachedDirectory {
    /// Names with whether each exists.
    pub(super) names: HashMap<String, bool>,
    /// True if all existing names are known.
    pub(super) is_complete: bool,
    /// The number of changes that the directory had at the last check.
    pub(super) version: u64,
    /// The time of the last check, in microseconds.
    pub(super) checked: u64,
    /// The time after the check for which the client uses its cache without a call.
    pub(super) believed: u64,
    /// True while the directory is delegated to the client.
    pub(super) delegated: bool,
    used: u64,
}

impl CachedDirectory {
    /// Returns whether the client uses its cache of the directory without a call.
    pub(super) const fn is_believed(&self, now: u64) -> bool {
        self.delegated || now < self.checked.saturating_add(self.believed)
    }

    /// The cached knowledge about a name.
    pub(super) fn knows(&self, name: &str) -> Option<NameKnowledge> {
        let known = self.names.get(name).map(|is_there| NameKnowledge::Name(*is_there));
        known.or_else(|| self.is_complete.then_some(NameKnowledge::Listing(self.version)))
    }

    /// Forgets all names.
    pub(super) fn forget(&mut self) {
        self.names.clear();
        self.is_complete = false;
    }
}

/// The directories that a client caches, up to a maximum; the least recently used is dropped first.
#[derive(Debug, Default)]
pub(super) struct ClientCache {
    directories: HashMap<u32, CachedDirectory>,
    by_use: BTreeMap<u64, u32>,
    uses: u64,
}

impl ClientCache {
    /// Marks a directory as used. Also returns the directory that was dropped for it, if that was
    /// delegated.
    pub(super) fn used(
        &mut self,
        directory: u32,
        most: usize,
    ) -> (&mut CachedDirectory, Option<u32>) {
        self.uses += 1;
        let known = self.directories.entry(directory).or_default();
        self.by_use.remove(&known.used);
        known.used = self.uses;
        self.by_use.insert(self.uses, directory);
        let gone = if self.directories.len() > most { self.by_use.pop_first() } else { None };
        let gone = gone.and_then(|(_, oldest)| Some((oldest, self.directories.remove(&oldest)?)));
        let returned = gone.filter(|(_, gone)| gone.delegated).map(|(oldest, _)| oldest);
        (self.directories.entry(directory).or_default(), returned)
    }
}
