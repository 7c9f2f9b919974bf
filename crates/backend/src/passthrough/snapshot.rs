use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use comity_vfs::{Handle, Result};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::cursor::{Batch, Item, Version, read_batch};
use super::limits::{LISTING_BYTES, SNAPSHOT_ENTRIES_MAX, SNAPSHOTS_ENTRIES_MAX};
use super::node::Object;

/// All entries of a directory as they were at one version of it.
#[derive(Debug)]
pub(super) struct Snapshot {
    version: Version,
    pub(super) batch: Batch,
    known: Box<[Known]>,
    /// Whether cookies grow from entry to entry.
    ordered: bool,
    /// Whether it holds all: too big a directory is not remembered.
    whole: bool,
    /// How often it was listed from the start.
    listings: AtomicU32,
}

/// What is known about an entry's object besides its name.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) handle: OnceLock<Handle>,
    /// It, as long as the cache of nodes keeps it open.
    object: OnceLock<Weak<Object>>,
}

impl Known {
    fn open(&self) -> Option<(&Handle, Arc<Object>)> {
        Some((self.handle.get()?, self.object.get()?.upgrade()?))
    }

    /// Remembers the open object, unless one was remembered before.
    pub(super) fn keep(&self, object: &Arc<Object>) {
        self.object.get_or_init(|| Arc::downgrade(object));
    }
}

impl Snapshot {
    /// Reads all entries of a directory, as far as they are not too many.
    pub(super) fn read(file: &File, version: Version) -> Result<Self> {
        let (mut all, mut part) = (Batch::default(), Batch::default());
        let mut room = Vec::with_capacity(LISTING_BYTES);
        let whole = loop {
            read_batch(file, &mut part, &mut room)?;
            if part.items.is_empty() {
                break true;
            }
            if all.items.len() + part.items.len() > SNAPSHOT_ENTRIES_MAX {
                all = Batch::default();
                break false;
            }
            all.append(&part);
        };
        let ordered = all.items.is_sorted_by(|one, next| one.cookie < next.cookie);
        let known = all.items.iter().map(|_| Known::default()).collect();
        let listings = AtomicU32::new(0);
        Ok(Self { version, batch: all, known, ordered, whole, listings })
    }

    /// A listing begins.
    pub(super) fn begin(&self) {
        self.listings.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it was listed before.
    pub(super) fn is_listed_again(&self) -> bool {
        self.listings.load(Ordering::Relaxed) > 1
    }

    /// Where a listing goes on behind `cookie`; `None` if that entry is not among these.
    pub(super) fn position(&self, cookie: u64) -> Option<usize> {
        let items = &self.batch.items;
        match cookie {
            0 => Some(0),
            _ if self.ordered => {
                items.binary_search_by_key(&cookie, |item| item.cookie).ok().map(|at| at + 1)
            }
            _ => items.iter().position(|item| item.cookie == cookie).map(|at| at + 1),
        }
    }

    /// The entries from `position` on.
    pub(super) fn rest(&self, position: usize) -> &[Item] {
        self.batch.items.get(position..).unwrap_or_default()
    }

    /// What is known about the object of an entry.
    pub(super) fn known(&self, position: usize) -> Option<&Known> {
        self.known.get(position)
    }

    /// The objects that are open.
    pub(super) fn open_objects(&self) -> impl Iterator<Item = (&Handle, Arc<Object>)> {
        self.known.iter().filter_map(Known::open)
    }

    /// An entry and its object, if that is open.
    pub(super) fn open_entry(&self, position: usize) -> Option<(&Item, &Handle, Arc<Object>)> {
        let (item, known) = (self.batch.items.get(position)?, self.known.get(position)?);
        known.open().map(|(handle, object)| (item, handle, object))
    }
}

/// Directories remembered whole.
#[derive(Debug)]
pub(super) struct Snapshots(Cache<Handle, Arc<Snapshot>, ByEntries>);

#[derive(Debug, Clone)]
struct ByEntries;

impl Weighter<Handle, Arc<Snapshot>> for ByEntries {
    fn weight(&self, _: &Handle, snapshot: &Arc<Snapshot>) -> u64 {
        snapshot.batch.items.len() as u64 + 1
    }
}

/// What is remembered about a directory at its present version.
pub(super) enum Remembered {
    /// All its entries.
    Whole(Arc<Snapshot>),
    /// That they are too many.
    TooBig,
    /// Nothing.
    Nothing,
}

impl Snapshots {
    /// What is remembered about a directory that has this version now.
    pub(super) fn of(&self, dir: &Handle, version: Version) -> Remembered {
        match self.0.get(dir) {
            Some(snapshot) if snapshot.version != version => Remembered::Nothing,
            Some(snapshot) if snapshot.whole => Remembered::Whole(snapshot),
            Some(_) => Remembered::TooBig,
            None => Remembered::Nothing,
        }
    }

    /// What is remembered about a directory, whatever version it had.
    pub(super) fn last(&self, dir: &Handle) -> Option<Arc<Snapshot>> {
        self.0.get(dir)
    }

    /// Remembers a directory; gives the snapshot back if it is whole.
    pub(super) fn keep(&self, dir: Handle, snapshot: Snapshot) -> Option<Arc<Snapshot>> {
        let snapshot = Arc::new(snapshot);
        self.0.insert(dir, Arc::clone(&snapshot));
        snapshot.whole.then_some(snapshot)
    }
}

/// Directories expected to be remembered at a time, to size the table with.
const SNAPSHOTS_EXPECTED: usize = 4_096;

impl Default for Snapshots {
    fn default() -> Self {
        let entries = SNAPSHOTS_ENTRIES_MAX as u64;
        Self(Cache::with_weighter(SNAPSHOTS_EXPECTED, entries, ByEntries))
    }
}
