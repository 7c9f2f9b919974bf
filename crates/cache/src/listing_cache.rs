//! Listings of delegated directories, by caller: the server may hide entries from some callers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Handle, Name};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::attribute_cache::{Moment, Step};
use crate::limits::{CALLERS_OF_A_NAME_MAX, LISTED_MAX, LISTED_OF_ONE_MAX};
use crate::verdict_cache::CallerId;

/// The first cookie for entries that were added to a cached listing and whose server cookie is
/// unknown. No known server uses these values, and a FUSE mount can pass them on.
const OWN_COOKIES: u64 = 0x7fff_fffe_d000_0000;

/// All entries of a directory, in the order of the server. Entries that were added later come
/// first: if the listing is forgotten, a caller that continues at the server sees some entries
/// twice rather than never.
#[derive(Debug, Clone)]
pub(crate) struct KnownListing {
    /// The version of the directory that they belong to.
    pub(crate) moment: Moment,
    /// The entries.
    pub(crate) entries: Vec<KnownEntry>,
}

/// An entry of a listing.
#[derive(Debug, Clone)]
pub(crate) struct KnownEntry {
    /// Its name.
    pub(crate) name: Arc<[u8]>,
    /// The object's number.
    pub(crate) fileid: u64,
    /// The server's cookie after the entry.
    pub(crate) cookie: u64,
    /// The object, if the listing has objects and the server sent this one.
    pub(crate) node: Option<Handle>,
}

/// A change of the entries of a listing.
#[derive(Debug, Clone)]
pub(crate) enum ListingEdit {
    /// The entries stay the same.
    Nothing,
    /// A name was added, or names another object now. If a caller added it, the server may hide it
    /// from others, whose listings are forgotten.
    Add { name: Arc<[u8]>, fileid: u64, node: Option<Handle>, caller: Option<CallerId> },
    /// A name was removed.
    Remove(Arc<[u8]>),
    /// The first name was replaced by the second, which names the same object.
    Move(Arc<[u8]>, Arc<[u8]>),
    /// The same, with the object given.
    Replace { from: Arc<[u8]>, name: Arc<[u8]>, fileid: u64, node: Option<Handle> },
}

impl KnownListing {
    /// The entries after a cookie; `None` if no entry has this cookie.
    pub(crate) fn behind(&self, cookie: u64) -> Option<&[KnownEntry]> {
        if cookie == 0 {
            return Some(&self.entries);
        }
        let at = self.entries.iter().position(|entry| entry.cookie == cookie)?;
        self.entries.get(at + 1..)
    }

    /// The entry of a name.
    pub(crate) fn entry(&self, name: &[u8]) -> Option<&KnownEntry> {
        self.entries.iter().find(|entry| *entry.name == *name)
    }

    fn remove(&mut self, name: &[u8]) {
        self.entries.retain(|entry| *entry.name != *name);
    }

    /// Adds an entry, or changes the object of an existing one; returns whether there was room.
    fn add(&mut self, cookies: &AtomicU64, added: KnownEntry) -> bool {
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.name == added.name) {
            (known.fileid, known.node) = (added.fileid, added.node);
            return true;
        }
        let cookie = OWN_COOKIES + cookies.fetch_add(1, Ordering::Relaxed);
        let is_taken = self.entries.iter().any(|entry| entry.cookie == cookie);
        if self.entries.len() >= LISTED_OF_ONE_MAX || is_taken {
            return false;
        }
        self.entries.insert(0, KnownEntry { cookie, ..added });
        true
    }

    /// Applies a change; returns whether the listing is still complete afterwards.
    fn edit(&mut self, cookies: &AtomicU64, edit: &ListingEdit) -> bool {
        match edit {
            ListingEdit::Nothing => true,
            ListingEdit::Add { name, fileid, node, .. } => {
                let (name, fileid, node) = (Arc::clone(name), *fileid, *node);
                self.add(cookies, KnownEntry { name, fileid, cookie: 0, node })
            }
            ListingEdit::Remove(name) => {
                self.remove(name);
                true
            }
            ListingEdit::Replace { from, name, fileid, node } => {
                self.remove(from);
                let (name, fileid, node) = (Arc::clone(name), *fileid, *node);
                self.add(cookies, KnownEntry { name, fileid, cookie: 0, node })
            }
            ListingEdit::Move(from, to) => {
                let Some(moved) = self.entry(from).cloned() else { return false };
                self.remove(from);
                self.add(cookies, KnownEntry { name: Arc::clone(to), ..moved })
            }
        }
    }
}

impl ListingEdit {
    /// A caller made a name.
    pub(crate) fn added_by(
        caller: CallerId,
        name: impl Into<Arc<[u8]>>,
        (fileid, node): (u64, Option<Handle>),
    ) -> Self {
        Self::Add { name: name.into(), fileid, node, caller: Some(caller) }
    }

    /// Returns whether a caller is known to see the directory as it is after the change.
    fn is_seen_by(&self, caller: CallerId) -> bool {
        !matches!(self, Self::Add { caller: Some(by), .. } if *by != caller)
    }
}

impl KnownEntry {
    /// Its name; `None` if it is invalid.
    pub(crate) fn name(&self) -> Option<Name<'_>> {
        Name::new(&self.name).ok()
    }
}

type OfCallers = Vec<(CallerId, Arc<KnownListing>)>;

/// The listings of one directory.
#[derive(Debug)]
struct DirectoryListings {
    listings: Mutex<OfCallers>,
    /// Most entries for which there is room: their weight in the cache, which must not change.
    entries_max: usize,
}

impl DirectoryListings {
    fn new(listings: OfCallers) -> Self {
        let entries_max = entries(&listings) + ADDED_MAX;
        Self { listings: Mutex::new(listings), entries_max }
    }

    fn lock(&self) -> MutexGuard<'_, OfCallers> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there are more entries than fit.
    fn is_too_small(&self, listings: &OfCallers) -> bool {
        entries(listings) > self.entries_max
    }
}

/// Entries that may be added to listings before they are stored anew.
const ADDED_MAX: usize = 32;

fn entries(listings: &OfCallers) -> usize {
    listings.iter().map(|(_, listing)| listing.entries.len()).sum()
}

/// Listings by directory and caller.
pub(crate) struct ListingCache {
    known: Cache<Handle, Arc<DirectoryListings>, ByEntries>,
    /// Number of cookies given to added entries.
    cookies: AtomicU64,
}

#[derive(Debug, Clone)]
struct ByEntries;

impl Weighter<Handle, Arc<DirectoryListings>> for ByEntries {
    fn weight(&self, _: &Handle, listings: &Arc<DirectoryListings>) -> u64 {
        listings.entries_max as u64
    }
}

impl ListingCache {
    pub(crate) fn new() -> Self {
        let expected = LISTED_MAX / 64;
        let known = Cache::with_weighter(expected, LISTED_MAX as u64, ByEntries);
        Self { known, cookies: AtomicU64::new(0) }
    }

    /// The cached listing of a directory, if it belongs to this version of the directory.
    pub(crate) fn get(
        &self,
        caller: CallerId,
        dir: &Handle,
        moment: Moment,
    ) -> Option<Arc<KnownListing>> {
        let listings = self.known.get(dir)?;
        let listings = listings.lock();
        let mut own = listings.iter().filter(|(other, _)| *other == caller);
        own.next().map(|(_, listing)| Arc::clone(listing)).filter(|it| it.moment == moment)
    }

    /// Stores a listing, unless it is too long.
    pub(crate) fn note(&self, caller: CallerId, dir: &Handle, listing: KnownListing) {
        if listing.entries.len() > LISTED_OF_ONE_MAX {
            return;
        }
        let before = self.known.get(dir);
        let mut listings = before.map_or_else(Vec::new, |listings| listings.lock().clone());
        listings.retain(|(other, known)| *other != caller && known.moment == listing.moment);
        listings.insert(0, (caller, Arc::new(listing)));
        listings.truncate(CALLERS_OF_A_NAME_MAX);
        self.known.insert(*dir, Arc::new(DirectoryListings::new(listings)));
    }

    /// Applies a change to the listings that belong to the version before it. Older ones are
    /// removed.
    pub(crate) fn edit(&self, dir: &Handle, step: Step, edit: &ListingEdit) {
        let Some(known) = self.known.get(dir) else { return };
        let mut listings = known.lock();
        listings.retain_mut(|(caller, listing)| {
            if listing.moment != step.from {
                // A listing of the later version already contains the change.
                return listing.moment == step.to;
            }
            if !edit.is_seen_by(*caller) {
                return false;
            }
            let listing = Arc::make_mut(listing);
            listing.moment = step.to;
            listing.edit(&self.cookies, edit)
        });
        if known.is_too_small(&listings) {
            // A thread that edits the old ones meanwhile changes nothing, and then the new ones
            // belong to an older version than the directory.
            let grown = DirectoryListings::new(std::mem::take(&mut *listings));
            self.known.insert(*dir, Arc::new(grown));
        }
    }

    /// An entry of a directory, from any caller's listing of this version.
    pub(crate) fn entry(&self, dir: &Handle, moment: Moment, name: &[u8]) -> Option<KnownEntry> {
        let listings = self.known.get(dir)?;
        let listings = listings.lock();
        let mut current = listings.iter().filter(|(_, listing)| listing.moment == moment);
        current.find_map(|(_, listing)| listing.entry(name).cloned())
    }

    /// Returns whether all entries have cookies of the server, at which a caller can continue even
    /// if the listing is forgotten.
    pub(crate) fn is_of_server(&self, listing: &KnownListing) -> bool {
        // Added entries are the first.
        listing.entries.first().is_none_or(|entry| self.server_cookie(entry.cookie) != 0)
    }

    /// The cookie at which to continue at the server, if the listing is no longer cached. Added
    /// entries come before all others, so their cookies become 0.
    pub(crate) fn server_cookie(&self, cookie: u64) -> u64 {
        let given = OWN_COOKIES..OWN_COOKIES + self.cookies.load(Ordering::Relaxed);
        if given.contains(&cookie) { 0 } else { cookie }
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::Cred;
    use comity_vfs::{Gid, Uid};

    use super::*;

    fn dir() -> Handle {
        Handle::new(b"dir").unwrap()
    }

    fn caller() -> CallerId {
        CallerId::of(&Cred::new(Uid::new(0), Gid::new(0)))
    }

    const fn at(own: u64) -> Moment {
        Moment { generation: 1, own }
    }

    const fn step(from: u64) -> Step {
        Step { from: at(from), to: at(from + 1) }
    }

    fn listings(names: &[&str]) -> ListingCache {
        let cache = ListingCache::new();
        let entry = |(number, name): (usize, &&str)| KnownEntry {
            name: name.as_bytes().into(),
            fileid: number as u64,
            cookie: number as u64 + 3,
            node: None,
        };
        let entries = names.iter().enumerate().map(entry).collect();
        cache.note(caller(), &dir(), KnownListing { moment: at(0), entries });
        cache
    }

    fn add(name: &str) -> ListingEdit {
        ListingEdit::added_by(caller(), name.as_bytes(), (9, None))
    }

    fn names(cache: &ListingCache, own: u64) -> Option<Vec<String>> {
        let listing = cache.get(caller(), &dir(), at(own))?;
        let text = |entry: &KnownEntry| String::from_utf8(entry.name.to_vec()).unwrap();
        Some(listing.entries.iter().map(text).collect())
    }

    #[test]
    fn a_change_is_applied_to_a_listing_of_the_version_before_it() {
        let cache = listings(&["a", "b"]);
        cache.edit(&dir(), step(0), &add("c"));
        cache.edit(&dir(), step(1), &ListingEdit::Remove(b"a"[..].into()));
        cache.edit(&dir(), step(2), &ListingEdit::Move(b"b"[..].into(), b"d"[..].into()));
        cache.edit(&dir(), step(3), &add("c"));
        cache.edit(&dir(), step(4), &ListingEdit::Nothing);
        assert_eq!(names(&cache, 5).unwrap(), ["d", "c"]);
        assert_eq!(names(&cache, 4), None);
        cache.edit(&dir(), step(9), &add("e"));
        assert_eq!(names(&cache, 10), None, "something came between");
        assert_eq!(names(&cache, 5), None);
    }

    #[test]
    fn a_caller_continues_after_each_entry_or_at_the_server_from_the_start() {
        let cache = listings(&["a"]);
        cache.edit(&dir(), step(0), &add("b"));
        let listing = cache.get(caller(), &dir(), at(1)).unwrap();
        let added = listing.entries[0].cookie;
        assert_eq!(listing.behind(added).unwrap().len(), 1);
        assert_eq!((cache.server_cookie(added), cache.server_cookie(3)), (0, 3));
        assert!(added < i64::MAX as u64, "the kernel accepts no larger offset");
    }

    #[test]
    fn a_listing_that_becomes_too_long_is_forgotten() {
        let known: Vec<String> = (1..LISTED_OF_ONE_MAX).map(|number| number.to_string()).collect();
        let cache = listings(&known.iter().map(String::as_str).collect::<Vec<_>>());
        cache.edit(&dir(), step(0), &add("the last"));
        assert_eq!(names(&cache, 1).unwrap().len(), LISTED_OF_ONE_MAX);
        cache.edit(&dir(), step(1), &add("one more"));
        assert_eq!(names(&cache, 2), None);
    }

    #[test]
    fn a_listing_that_grows_weighs_more() {
        let cache = listings(&[]);
        for number in 0..200 {
            cache.edit(&dir(), step(number), &add(&number.to_string()));
        }
        assert_eq!(names(&cache, 200).unwrap().len(), 200);
        assert!(cache.known.weight() >= 200, "it weighs {}", cache.known.weight());
    }

    #[test]
    fn a_name_that_one_caller_adds_is_not_shown_to_others_from_memory() {
        let cache = listings(&["a"]);
        let other = CallerId::of(&Cred::new(Uid::new(1), Gid::new(1)));
        cache.note(other, &dir(), KnownListing { moment: at(0), entries: Vec::new() });
        cache.edit(&dir(), step(0), &add("b"));
        assert_eq!(names(&cache, 1).unwrap(), ["b", "a"]);
        assert!(cache.get(other, &dir(), at(1)).is_none());
    }
}
