//! Listings of delegated directories, by caller: entries may be hidden from some.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Handle, Name};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::attribute_cache::{Moment, Step};
use crate::limits::{CALLERS_OF_A_NAME_MAX, LISTED_MAX, LISTED_OF_ONE_MAX};
use crate::verdict_cache::CallerId;

/// The first cookie of entries that were added to a known listing, whose cookie at the server is
/// not known. No server is known to give one of these out, and a FUSE mount can show them.
const OWN_COOKIES: u64 = 0x7fff_fffe_d000_0000;

/// All entries of a directory, in the order of the server. Those that were added later come first:
/// a caller that goes on at the server after the listing was forgotten sees them twice rather than
/// never.
#[derive(Debug, Clone)]
pub(crate) struct KnownListing {
    /// The moment of the directory that they are of.
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
    /// The server's cookie behind the entry.
    pub(crate) cookie: u64,
    /// The object, if the listing was to show objects and the server told it.
    pub(crate) node: Option<Handle>,
}

/// A change of the entries of a listing.
#[derive(Debug, Clone)]
pub(crate) enum ListingEdit {
    /// The entries stay.
    Nothing,
    /// A name was made, or stands for another object now.
    Add { name: Arc<[u8]>, fileid: u64, node: Option<Handle> },
    /// A name was removed.
    Remove(Arc<[u8]>),
    /// The first name was replaced by the second one, which stands for the same object.
    Move(Arc<[u8]>, Arc<[u8]>),
    /// The same, where the object was told.
    Replace { from: Arc<[u8]>, name: Arc<[u8]>, fileid: u64, node: Option<Handle> },
}

impl KnownListing {
    /// The entries behind a cookie; `None` if no entry has it.
    pub(crate) fn behind(&self, cookie: u64) -> Option<&[KnownEntry]> {
        if cookie == 0 {
            return Some(&self.entries);
        }
        let at = self.entries.iter().position(|entry| entry.cookie == cookie)?;
        self.entries.get(at + 1..)
    }

    fn entry(&self, name: &[u8]) -> Option<&KnownEntry> {
        self.entries.iter().find(|entry| *entry.name == *name)
    }

    fn remove(&mut self, name: &[u8]) {
        self.entries.retain(|entry| *entry.name != *name);
    }

    /// Adds an entry, or changes the object of one; returns whether there was room.
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

    /// Makes a change; returns whether the listing is known afterwards.
    fn edit(&mut self, cookies: &AtomicU64, edit: &ListingEdit) -> bool {
        match edit {
            ListingEdit::Nothing => true,
            ListingEdit::Add { name, fileid, node } => {
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

impl KnownEntry {
    /// Its name, as callers are shown it.
    pub(crate) fn name(&self) -> Option<Name<'_>> {
        Name::new(&self.name).ok()
    }
}

type OfCallers = Vec<(CallerId, Arc<KnownListing>)>;

/// The listings of one directory.
#[derive(Debug)]
struct DirectoryListings {
    listings: Mutex<OfCallers>,
    /// The number of entries when the listings were noted. The cache wants a weight that stays.
    entries: usize,
}

impl DirectoryListings {
    fn new(listings: OfCallers) -> Self {
        let entries = entries(&listings);
        Self { listings: Mutex::new(listings), entries }
    }

    fn lock(&self) -> MutexGuard<'_, OfCallers> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether changes have made the listings far longer than they count.
    fn has_outgrown(&self, listings: &OfCallers) -> bool {
        entries(listings) > 2 * self.entries + ADDED_MIN
    }
}

/// Entries that may be added to listings, however short these were.
const ADDED_MIN: usize = 1024;

fn entries(listings: &OfCallers) -> usize {
    listings.iter().map(|(_, listing)| listing.entries.len()).sum()
}

/// Listings by directory and caller.
pub(crate) struct ListingCache {
    known: Cache<Handle, Arc<DirectoryListings>, ByEntries>,
    /// The number of cookies that were given to added entries.
    cookies: AtomicU64,
}

#[derive(Debug, Clone)]
struct ByEntries;

impl Weighter<Handle, Arc<DirectoryListings>> for ByEntries {
    fn weight(&self, _: &Handle, listings: &Arc<DirectoryListings>) -> u64 {
        listings.entries as u64 + 1
    }
}

impl ListingCache {
    pub(crate) fn new() -> Self {
        let expected = LISTED_MAX / 64;
        let known = Cache::with_weighter(expected, LISTED_MAX as u64, ByEntries);
        Self { known, cookies: AtomicU64::new(0) }
    }

    /// The listing of a directory that is at this moment of its life.
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

    /// Notes a listing, unless it is too long.
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

    /// Makes a change in the listings of a directory that are of the moment before it. All others
    /// are forgotten.
    pub(crate) fn edit(&self, dir: &Handle, step: Step, edit: &ListingEdit) {
        let Some(known) = self.known.get(dir) else { return };
        let mut listings = known.lock();
        listings.retain_mut(|(_, listing)| {
            if listing.moment != step.from {
                // One of a later moment has the change already.
                return listing.moment == step.to;
            }
            let listing = Arc::make_mut(listing);
            listing.moment = step.to;
            listing.edit(&self.cookies, edit)
        });
        if known.has_outgrown(&listings) {
            listings.clear();
        }
    }

    /// An entry of a directory, as a caller's listing of this moment shows it.
    pub(crate) fn entry(&self, dir: &Handle, moment: Moment, name: &[u8]) -> Option<KnownEntry> {
        let listings = self.known.get(dir)?;
        let listings = listings.lock();
        let mut current = listings.iter().filter(|(_, listing)| listing.moment == moment);
        current.find_map(|(_, listing)| listing.entry(name).cloned())
    }

    /// The server's cookie to go on behind, where the listing is not known any more. The cookies of
    /// added entries are before all others.
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
        ListingEdit::Add { name: name.as_bytes().into(), fileid: 9, node: None }
    }

    fn names(cache: &ListingCache, own: u64) -> Option<Vec<String>> {
        let listing = cache.get(caller(), &dir(), at(own))?;
        let text = |entry: &KnownEntry| String::from_utf8(entry.name.to_vec()).unwrap();
        Some(listing.entries.iter().map(text).collect())
    }

    #[test]
    fn changes_are_made_in_a_listing_of_the_moment_before_them() {
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
    fn a_caller_goes_on_behind_each_entry_and_at_the_server_from_the_start_if_need_be() {
        let cache = listings(&["a"]);
        cache.edit(&dir(), step(0), &add("b"));
        let listing = cache.get(caller(), &dir(), at(1)).unwrap();
        let added = listing.entries[0].cookie;
        assert_eq!(listing.behind(added).unwrap().len(), 1);
        assert_eq!((cache.server_cookie(added), cache.server_cookie(3)), (0, 3));
        assert!(added < i64::MAX as u64, "the kernel takes no other");
    }

    #[test]
    fn a_listing_that_becomes_too_long_is_forgotten() {
        for (before, added) in [(0, ADDED_MIN), (LISTED_OF_ONE_MAX - 2, 2)] {
            let known: Vec<String> = (0..before).map(|number| format!("known {number}")).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let cache = listings(&known);
            for number in 0..added as u64 {
                cache.edit(&dir(), step(number), &add(&number.to_string()));
            }
            assert!(names(&cache, added as u64).is_some());
            cache.edit(&dir(), step(added as u64), &add("one more"));
            assert_eq!(names(&cache, added as u64 + 1), None);
        }
    }
}
