//! Listings of delegated directories, by caller: entries may be hidden from some.

use std::sync::Arc;

use comity_vfs::{Handle, Name};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::attribute_cache::Moment;
use crate::limits::{LISTED_MAX, LISTED_OF_ONE_MAX};
use crate::verdict_cache::CallerId;

/// All entries of a directory, in the order of the server.
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
    pub(crate) name: Box<[u8]>,
    /// The object's number.
    pub(crate) fileid: u64,
    /// The server's cookie behind the entry.
    pub(crate) cookie: u64,
    /// The object, if the listing was to show objects and the server told it.
    pub(crate) node: Option<Handle>,
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
}

impl KnownEntry {
    /// Its name, as callers are shown it.
    pub(crate) fn name(&self) -> Option<Name<'_>> {
        Name::new(&self.name).ok()
    }
}

type ListingKey = (CallerId, Handle);

/// Listings by caller and directory.
pub(crate) struct ListingCache {
    known: Cache<ListingKey, Arc<KnownListing>, ByEntries>,
}

#[derive(Debug, Clone)]
struct ByEntries;

impl Weighter<ListingKey, Arc<KnownListing>> for ByEntries {
    fn weight(&self, _: &ListingKey, listing: &Arc<KnownListing>) -> u64 {
        listing.entries.len() as u64 + 1
    }
}

impl ListingCache {
    pub(crate) fn new() -> Self {
        let expected = LISTED_MAX / 64;
        Self { known: Cache::with_weighter(expected, LISTED_MAX as u64, ByEntries) }
    }

    /// The listing of a directory that is at this moment of its life.
    pub(crate) fn get(
        &self,
        caller: CallerId,
        dir: &Handle,
        moment: Moment,
    ) -> Option<Arc<KnownListing>> {
        self.known.get(&(caller, *dir)).filter(|listing| listing.moment == moment)
    }

    /// Notes a listing, unless it is too long.
    pub(crate) fn note(&self, caller: CallerId, dir: &Handle, listing: KnownListing) {
        if listing.entries.len() <= LISTED_OF_ONE_MAX {
            self.known.insert((caller, *dir), Arc::new(listing));
        }
    }
}
