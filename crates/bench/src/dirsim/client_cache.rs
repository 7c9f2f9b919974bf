//! The directories that a client remembers, by the rules of the disk cache of a mount.

use std::collections::{BTreeMap, HashMap};

/// Time within which a second look asks for a delegation, in microseconds.
const LOOKS_WITHIN: u64 = 60_000_000;
/// First and longest pause after a refusal, in microseconds.
const REFUSED: (u64, u64) = (100_000, 60_000_000);

/// A client's knowledge of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownName {
    /// The name exists.
    There,
    /// The name exists, and its object's attributes have to be fetched.
    Changed,
    /// The name is missing.
    Missing,
    /// Another client has added the name.
    Unknown,
}

/// The memory that a client has of a directory.
#[derive(Debug, Clone, Default)]
pub(super) struct CachedDirectory {
    /// Names that were looked up or changed.
    pub(super) names: HashMap<String, KnownName>,
    /// True if all names that existed are known, from a listing.
    pub(super) is_listed: bool,
    /// True if a listing can be repeated from memory under a delegation.
    pub(super) has_listing: bool,
    /// True if the client has proved that its user may look names up.
    pub(super) may_search: bool,
    /// True if all rights of its user are known.
    pub(super) has_rights: bool,
    /// The number of changes that the directory had when its attributes were fetched.
    pub(super) version: Option<u64>,
    /// The time when its attributes were fetched, unless they have expired, in microseconds.
    pub(super) fetched: Option<u64>,
    /// The time after it for which the client uses its cache without a delegation.
    life: u64,
    /// True while the directory is delegated to the client.
    pub(super) delegated: bool,
    looked: Option<u64>,
    rests_until: u64,
    pause: u64,
    used: u64,
}

impl CachedDirectory {
    /// Returns whether the client uses its cache of the directory without a call.
    pub(super) fn is_valid(&self, now: u64) -> bool {
        let is_young = |fetched: u64| now < fetched.saturating_add(self.life);
        self.fetched.is_some_and(|fetched| self.delegated || is_young(fetched))
    }

    /// The cached knowledge about a name, which is there or not as the listing has shown it.
    pub(super) fn knows(&self, name: &str, is_there: bool) -> Option<KnownName> {
        let listed = (self.is_listed && is_there).then_some(KnownName::There);
        let known = self.names.get(name).copied().or(listed).filter(|_| self.may_search);
        known.filter(|known| *known != KnownName::Unknown)
    }

    /// Updates the cache after a reply with the directory's attributes, which has had so many
    /// changes.
    pub(super) fn note(&mut self, version: u64, now: u64, (least, longest): (u64, u64)) {
        let is_same = self.version.is_some_and(|known| self.delegated || known == version);
        if !is_same {
            self.forget();
        }
        self.life = match self.fetched {
            _ if !is_same => least,
            Some(fetched) if now >= fetched.saturating_add(self.life) => {
                (2 * self.life).clamp(least, longest)
            }
            _ => self.life,
        };
        (self.version, self.fetched) = (Some(version), Some(now));
    }

    /// Forgets all names and rights.
    pub(super) fn forget(&mut self) {
        self.names.clear();
        (self.is_listed, self.has_listing) = (false, false);
        (self.may_search, self.has_rights) = (false, false);
    }

    /// Returns whether the attributes of all entries are known, so that a listing with attributes
    /// can be repeated from memory.
    pub(super) fn has_all_attributes(&self) -> bool {
        self.names.values().all(|name| matches!(name, KnownName::There | KnownName::Missing))
    }

    /// Applies a notification of a name.
    pub(super) fn told(&mut self, name: String, is_there: bool) {
        let is_known = self.is_listed || self.names.contains_key(&name);
        let known = match is_there {
            false => KnownName::Missing,
            true if self.names.contains_key(&name) => KnownName::Changed,
            true => KnownName::Unknown,
        };
        if is_known {
            self.names.insert(name, known);
        }
    }

    /// Notes a look that the cache cannot answer; returns whether to ask for a delegation.
    pub(super) fn look(&mut self, now: u64) -> bool {
        let before = self.looked.replace(now);
        before.is_some_and(|before| now - before <= LOOKS_WITHIN) && now >= self.rests_until
    }

    /// Notes the answer to a request for a delegation.
    pub(super) fn answered(&mut self, now: u64, is_granted: bool) {
        self.delegated = is_granted;
        let pause = self.pause.max(REFUSED.0);
        (self.rests_until, self.pause) =
            if is_granted { (0, 0) } else { (now + pause, (2 * pause).min(REFUSED.1)) };
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
