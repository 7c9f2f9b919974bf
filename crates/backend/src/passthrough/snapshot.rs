use std::fs::File;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use comity_vfs::{Handle, Result};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::cursor::{Batch, Item, Version, read_batch};
use super::limits::{
    LISTING_BYTES, SNAPSHOT_ENTRIES_MAX, SNAPSHOT_WORN_PART, SNAPSHOTS_ENTRIES_MAX,
};
use super::node::Object;

/// All entries of a directory as they were at one version of it.
#[derive(Debug)]
pub(super) struct Snapshot {
    version: Version,
    pub(super) batch: Arc<Batch>,
    known: Box<[Known]>,
    /// Whether cookies grow from entry to entry.
    ordered: bool,
    /// Whether it holds all: too big a directory is not remembered.
    whole: bool,
    /// When it was listed last from the start, and how long that was after the time before.
    begun: AtomicU64,
    interval: AtomicU64,
    /// How often an entry was shown of which a closed object is remembered.
    worn: AtomicUsize,
}

/// The time of what has not happened yet.
const NEVER: u64 = u64::MAX;

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

    /// Remembers the open object; `false` if one that was closed since is remembered.
    pub(super) fn keep(&self, object: &Arc<Object>) -> bool {
        let kept = self.object.get_or_init(|| Arc::downgrade(object));
        kept.as_ptr() == Arc::as_ptr(object)
    }

    /// The same without an object that was closed.
    fn renewed(&self) -> Self {
        let object = self.object.get().filter(|object| object.strong_count() > 0);
        Self {
            handle: self.handle.clone(),
            object: object.cloned().map_or_else(OnceLock::new, OnceLock::from),
        }
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
        let (begun, interval) = (AtomicU64::new(NEVER), AtomicU64::new(NEVER));
        let (batch, worn) = (Arc::new(all), AtomicUsize::new(0));
        Ok(Self { version, batch, known, ordered, whole, begun, interval, worn })
    }

    /// A listing begins.
    pub(super) fn begin(&self, now: u64) {
        let last = self.begun.swap(now, Ordering::Relaxed);
        if last != NEVER {
            self.interval.store(now.saturating_sub(last), Ordering::Relaxed);
        }
    }

    /// How long before the present listing it was listed; `None` if it was not.
    pub(super) fn interval(&self) -> Option<u64> {
        Some(self.interval.load(Ordering::Relaxed)).filter(|interval| *interval != NEVER)
    }

    /// Remembers the open object of an entry.
    pub(super) fn keep(&self, known: &Known, object: &Arc<Object>) {
        if !known.keep(object) {
            self.worn.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The same without what was closed, if that has been in the way.
    pub(super) fn renewed(&self) -> Option<Self> {
        let worn = self.worn.load(Ordering::Relaxed);
        (worn > self.known.len() / SNAPSHOT_WORN_PART).then(|| Self {
            version: self.version,
            batch: Arc::clone(&self.batch),
            known: self.known.iter().map(Known::renewed).collect(),
            begun: AtomicU64::new(self.begun.load(Ordering::Relaxed)),
            interval: AtomicU64::new(self.interval.load(Ordering::Relaxed)),
            worn: AtomicUsize::new(0),
            ..*self
        })
    }

    /// How many entries it has.
    pub(super) fn len(&self) -> usize {
        self.known.len()
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
