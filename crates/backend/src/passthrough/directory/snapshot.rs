use std::fs::File;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use comity_vfs::{Handle, Result};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::readdir_cursor::{Batch, Item, Version, read_more};
use crate::passthrough::handles::node::Object;
use crate::passthrough::limits::{
    LISTING_BYTES, SNAPSHOT_ENTRIES_MAX, SNAPSHOT_STEP, SNAPSHOT_WORN_PART, SNAPSHOTS_ENTRIES_MAX,
};

/// All entries of a directory at one version of it.
#[derive(Debug)]
pub(crate) struct Snapshot {
    version: Version,
    pub(crate) batch: Arc<Batch>,
    /// The handles of the entries, in steps of entries whose handles are read together.
    handles: Arc<[OnceLock<Box<Handles>>]>,
    /// The objects of the entries, while the node cache keeps them open.
    objects: Box<[OnceLock<Weak<Object>>]>,
    /// True if cookies grow from entry to entry.
    ordered: bool,
    /// True if it has all entries: a directory with too many is not remembered.
    whole: bool,
    /// Time of the last listing from the start, and the time between it and the one before.
    begun: AtomicU64,
    interval: AtomicU64,
    /// The number of shown entries whose remembered object was closed.
    worn: AtomicUsize,
}

/// The handles of the entries of a step, as far as they are known.
pub(crate) type Handles = [Option<Handle>; SNAPSHOT_STEP];

/// Stands for a time that is not known yet.
const NEVER: u64 = u64::MAX;

impl Snapshot {
    /// Reads all entries of a directory, unless they are too many.
    pub(crate) fn read(file: &File, version: Version) -> Result<Self> {
        let (mut all, mut room) = (Batch::default(), Vec::with_capacity(LISTING_BYTES));
        let whole = loop {
            let before = all.items.len();
            read_more(file, &mut all, &mut room)?;
            if all.items.len() == before {
                break true;
            }
            if all.items.len() > SNAPSHOT_ENTRIES_MAX {
                all = Batch::default();
                break false;
            }
        };
        let ordered = all.items.is_sorted_by(|one, next| one.cookie < next.cookie);
        let steps = all.items.len().div_ceil(SNAPSHOT_STEP);
        Ok(Self {
            version,
            handles: (0..steps).map(|_| OnceLock::new()).collect(),
            objects: all.items.iter().map(|_| OnceLock::new()).collect(),
            batch: Arc::new(all),
            ordered,
            whole,
            begun: AtomicU64::new(NEVER),
            interval: AtomicU64::new(NEVER),
            worn: AtomicUsize::new(0),
        })
    }

    /// Notes that a listing begins.
    pub(crate) fn begin(&self, now: u64) {
        let last = self.begun.swap(now, Ordering::Relaxed);
        if last != NEVER {
            self.interval.store(now.saturating_sub(last), Ordering::Relaxed);
        }
    }

    /// Returns the time between the previous listing and the present one; `None` if there was no
    /// previous one.
    pub(crate) fn interval(&self) -> Option<u64> {
        Some(self.interval.load(Ordering::Relaxed)).filter(|interval| *interval != NEVER)
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.batch.items.len()
    }

    /// Returns the position after `cookie`; `None` if no entry has this cookie.
    pub(crate) fn position(&self, cookie: u64) -> Option<usize> {
        let items = &self.batch.items;
        match cookie {
            0 => Some(0),
            _ if self.ordered => {
                items.binary_search_by_key(&cookie, |item| item.cookie).ok().map(|at| at + 1)
            }
            _ => items.iter().position(|item| item.cookie == cookie).map(|at| at + 1),
        }
    }

    /// Returns the rest of the step of `position`; it is empty at the end.
    pub(crate) fn step(&self, position: usize) -> &[Item] {
        let end = (position - position % SNAPSHOT_STEP + SNAPSHOT_STEP).min(self.len());
        self.batch.items.get(position..end).unwrap_or_default()
    }

    /// Returns the handles of the step of `position`; `name` finds those that are not known. They
    /// are remembered if all exist.
    pub(crate) fn handles(
        &self,
        position: usize,
        name: impl FnMut(&Item) -> Option<Handle>,
    ) -> Handles {
        let Some(place) = self.handles.get(position / SNAPSHOT_STEP) else {
            return [None; SNAPSHOT_STEP];
        };
        if let Some(handles) = place.get() {
            return **handles;
        }
        let (mut handles, step) =
            ([None; SNAPSHOT_STEP], self.step(position - position % SNAPSHOT_STEP));
        for (handle, found) in handles.iter_mut().zip(step.iter().map(name)) {
            *handle = found;
        }
        if handles.iter().flatten().count() == step.len() {
            place.get_or_init(|| Box::new(handles));
        }
        handles
    }

    /// Remembers the open object of an entry.
    pub(crate) fn keep(&self, position: usize, object: &Arc<Object>) {
        let Some(place) = self.objects.get(position) else { return };
        let kept = place.get_or_init(|| Arc::downgrade(object));
        if kept.as_ptr() != Arc::as_ptr(object) {
            self.worn.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns a copy without closed objects, if many were met.
    pub(crate) fn renewed(&self) -> Option<Self> {
        let is_worn = self.worn.load(Ordering::Relaxed) > self.len() / SNAPSHOT_WORN_PART;
        is_worn.then(|| Self {
            version: self.version,
            batch: Arc::clone(&self.batch),
            handles: Arc::clone(&self.handles),
            objects: self.objects.iter().map(if_open).collect(),
            begun: AtomicU64::new(self.begun.load(Ordering::Relaxed)),
            interval: AtomicU64::new(self.interval.load(Ordering::Relaxed)),
            worn: AtomicUsize::new(0),
            ..*self
        })
    }

    /// Returns the objects that are open.
    pub(crate) fn open_objects(&self) -> impl Iterator<Item = (&Handle, Arc<Object>)> {
        let entries = (0..self.len()).filter_map(|position| self.open_entry(position));
        entries.map(|(_, handle, object)| (handle, object))
    }

    /// Returns an entry and its object, if the object is open.
    pub(crate) fn open_entry(&self, position: usize) -> Option<(&Item, &Handle, Arc<Object>)> {
        let item = self.batch.items.get(position)?;
        let handles = self.handles.get(position / SNAPSHOT_STEP)?.get()?;
        let handle = handles.get(position % SNAPSHOT_STEP)?.as_ref()?;
        let object = self.objects.get(position)?.get()?.upgrade()?;
        Some((item, handle, object))
    }
}

/// Returns the remembered object, unless it was closed.
fn if_open(object: &OnceLock<Weak<Object>>) -> OnceLock<Weak<Object>> {
    let open = object.get().filter(|object| object.strong_count() > 0);
    open.cloned().map_or_else(OnceLock::new, OnceLock::from)
}

/// Directories of which all entries are remembered.
#[derive(Debug)]
pub(crate) struct Snapshots(Cache<Handle, Arc<Snapshot>, ByEntries>);

#[derive(Debug, Clone)]
struct ByEntries;

impl Weighter<Handle, Arc<Snapshot>> for ByEntries {
    fn weight(&self, _: &Handle, snapshot: &Arc<Snapshot>) -> u64 {
        snapshot.batch.items.len() as u64 + 1
    }
}

/// The snapshot of a directory at its present version, if there is one.
pub(crate) enum Remembered {
    /// All entries of the directory.
    Whole(Arc<Snapshot>),
    /// The directory has too many entries.
    TooBig,
    /// There is no snapshot.
    Nothing,
}

impl Snapshots {
    /// Returns the snapshot of a directory that has this version now.
    pub(crate) fn of(&self, dir: &Handle, version: Version) -> Remembered {
        match self.0.get(dir) {
            Some(snapshot) if snapshot.version != version => Remembered::Nothing,
            Some(snapshot) if snapshot.whole => Remembered::Whole(snapshot),
            Some(_) => Remembered::TooBig,
            None => Remembered::Nothing,
        }
    }

    /// Returns the latest snapshot of a directory, whatever its version.
    pub(crate) fn last(&self, dir: &Handle) -> Option<Arc<Snapshot>> {
        self.0.get(dir)
    }

    /// Remembers a directory; returns the snapshot if it has all entries.
    pub(crate) fn keep(&self, dir: Handle, snapshot: Snapshot) -> Option<Arc<Snapshot>> {
        let snapshot = Arc::new(snapshot);
        self.0.insert(dir, Arc::clone(&snapshot));
        snapshot.whole.then_some(snapshot)
    }
}

/// Number of directories that the table is sized for.
const SNAPSHOTS_EXPECTED: usize = 4_096;

impl Default for Snapshots {
    fn default() -> Self {
        let entries = SNAPSHOTS_ENTRIES_MAX as u64;
        Self(Cache::with_weighter(SNAPSHOTS_EXPECTED, entries, ByEntries))
    }
}
