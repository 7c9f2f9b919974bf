//! The cleaner: it keeps the cache within its limits by removing the oldest files, one step at a
//! time.
//!
//! There is no list of all files, because there may be very many. A round through all folders
//! counts bytes by the age of their last use. If there are too many bytes, the next round removes
//! the files above an age that leaves few enough.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::key::{OBJECTS, Paths};
use crate::limits::{CLEANER_MARGIN, CLEANER_STEP};
use crate::page_store::PageStore;

/// Classes of age: each twice as old as the one before, from a minute to more than a century.
const CLASSES: usize = 32;

/// The limits of the cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Most bytes that files may take.
    pub(crate) bytes_max: u64,
    /// Free bytes that must stay on the disk.
    pub(crate) free_min: u64,
}

/// The state of the cleaner.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    round: Mutex<Round>,
    /// True if the disk was full: begin a round now.
    urgent: AtomicBool,
}

/// A round through all folders.
#[derive(Debug, Default)]
struct Round {
    /// Folders that this round has not read yet; empty between rounds.
    folders: Vec<String>,
    names: Vec<(String, String)>,
    /// Bytes by class of age.
    classes: [u64; CLASSES],
    /// Files of this class and older ones are removed until this number of bytes is freed.
    removes: Option<(usize, u64)>,
    /// Bytes of all files, from the last complete round.
    total: u64,
    freed: u64,
}

impl Cleaner {
    /// Makes a round begin at the next step.
    pub(crate) fn hurry(&self) {
        self.urgent.store(true, Ordering::Relaxed);
    }

    /// Bytes of all files, from the last complete round.
    pub(crate) fn total(&self) -> u64 {
        self.round.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// Does one step; returns whether a round is under way. Files for which `keeps` holds are kept.
    pub(crate) fn step(
        &self,
        store: &PageStore,
        bounds: Bounds,
        keeps: &dyn Fn(&crate::key::FileName) -> bool,
    ) -> bool {
        let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        if round.is_idle() {
            self.urgent.store(false, Ordering::Relaxed);
            round.begin(store);
        }
        for _ in 0..CLEANER_STEP {
            let Some((folder, name)) = round.next(store) else { break };
            round.look(store, &Paths::of(&folder, &name), keeps);
        }
        if round.is_idle() {
            round.end(store, bounds);
        }
        round.removes.is_some() || !round.is_idle() || self.urgent.load(Ordering::Relaxed)
    }
}

impl Round {
    fn is_idle(&self) -> bool {
        self.folders.is_empty() && self.names.is_empty()
    }

    fn begin(&mut self, store: &PageStore) {
        self.folders = store.list(OBJECTS);
        (self.classes, self.freed) = ([0; CLASSES], 0);
    }

    /// Returns the next file.
    fn next(&mut self, store: &PageStore) -> Option<(String, String)> {
        while self.names.is_empty() {
            let folder = self.folders.pop()?;
            let files = store.list(&format!("{OBJECTS}/{folder}")).into_iter();
            let maps = files.filter_map(|file| Some(file.strip_suffix(".map")?.to_owned()));
            self.names = maps.map(|name| (folder.clone(), name)).collect();
        }
        self.names.pop()
    }

    /// Counts a file, or removes it.
    fn look(
        &mut self,
        store: &PageStore,
        paths: &Paths,
        keeps: &dyn Fn(&crate::key::FileName) -> bool,
    ) {
        let used = store.used(paths);
        let Some(header) = store.load(paths) else {
            // No header says which file the objects belong to.
            self.freed += store.remove_objects(paths);
            return;
        };
        let class = class(store.seconds().saturating_sub(header.used_seconds));
        let is_old =
            self.removes.is_some_and(|(oldest, goal)| class >= oldest && self.freed < goal);
        if is_old && !header.is_pinned && !keeps(&header.file) {
            self.freed += store.evict(&header.file);
        } else if let Some(bytes) = self.classes.get_mut(class) {
            *bytes += used;
        }
    }

    /// Decides what the next round removes.
    fn end(&mut self, store: &PageStore, bounds: Bounds) {
        self.total = self.classes.iter().sum();
        store.forget_drift();
        let lacking = bounds.free_min.saturating_sub(store.free());
        let over = self.total.saturating_sub(bounds.bytes_max);
        let mut goal = over.max(lacking);
        if goal > 0 {
            // Remove some more, so that the next page does not start another round.
            goal += self.total.min(bounds.bytes_max) / CLEANER_MARGIN;
        }
        let mut sum = 0;
        self.removes = (0..CLASSES).rev().find_map(|class| {
            sum += self.classes.get(class).copied().unwrap_or(0);
            (goal > 0 && sum > 0 && (sum >= goal || class == 0)).then_some((class, goal))
        });
    }
}

/// The class of a file that was last used `age` seconds ago.
fn class(age: u64) -> usize {
    let minutes = age / 60;
    ((u64::BITS - minutes.leading_zeros()) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use comity_vfs::Handle;

    use super::*;
    use crate::key::FileName;
    use crate::limits::PAGE_BYTES;
    use crate::medium::Medium;
    use crate::memory_medium::MemoryMedium;
    use crate::page_store::FileVersion;

    struct World {
        medium: Arc<MemoryMedium>,
        store: PageStore,
        now: Arc<AtomicU64>,
        cleaner: Cleaner,
    }

    fn file(number: u64) -> FileName {
        FileName { volume: 1, handle: Handle::new(&number.to_be_bytes()).unwrap() }
    }

    impl World {
        /// A store with files of one page, each used an hour after the one before.
        fn new(files: u64) -> Self {
            let (medium, now) = (Arc::new(MemoryMedium::default()), Arc::new(AtomicU64::new(0)));
            let clock = Arc::clone(&now);
            let store = PageStore::new(
                Arc::clone(&medium) as Arc<dyn Medium>,
                Arc::new(move || clock.load(Ordering::Relaxed)),
            );
            for number in 0..files {
                now.fetch_add(3_600_000, Ordering::Relaxed);
                let epoch = store.enter(&file(number), FileVersion { change: 1, size: PAGE_BYTES });
                store.fill(&file(number), epoch, 0, &[1; PAGE_BYTES as usize]);
            }
            Self { medium, store, now, cleaner: Cleaner::default() }
        }

        fn step(&self, bounds: Bounds, keeps: &dyn Fn(&FileName) -> bool) {
            let _ = self.cleaner.step(&self.store, bounds, keeps);
        }

        fn clean(&self, bounds: Bounds, keeps: &dyn Fn(&FileName) -> bool) {
            for _ in 0..10_000 {
                if !self.cleaner.step(&self.store, bounds, keeps) {
                    return;
                }
            }
            panic!("a round of the cleaner does not end");
        }

        fn left(&self, files: u64) -> Vec<u64> {
            (0..files).filter(|number| self.store.version(&file(*number)).is_some()).collect()
        }

        fn bytes(&self) -> u64 {
            self.medium.names().iter().map(|name| self.medium.used(name).unwrap()).sum()
        }
    }

    /// A regression test for juicefs issue 5070.
    #[test]
    fn a_cache_does_not_grow_past_its_bound() {
        let world = World::new(200);
        let bounds = Bounds { bytes_max: 400_000, free_min: 0 };
        world.clean(bounds, &|_| false);
        assert!(world.bytes() <= 400_000, "{} bytes", world.bytes());
        let left = world.left(200);
        assert!(left.len() > 20, "{} files remain", left.len());
        assert!(left.contains(&199) && !left.contains(&0));
        world.now.fetch_add(1, Ordering::Relaxed);
        world.clean(bounds, &|_| false);
        assert_eq!(world.left(200), left, "nothing more is removed");
    }

    #[test]
    fn free_space_is_kept() {
        let world = World::new(50);
        world.medium.set_free(1_000);
        world.clean(Bounds { bytes_max: u64::MAX, free_min: 1_000 }, &|_| false);
        assert_eq!(world.left(50).len(), 50);
        let bounds = Bounds { bytes_max: u64::MAX, free_min: 100_000 };
        (0..20).for_each(|_| world.step(bounds, &|_| false));
        assert!(world.left(50).len() < 30);
    }

    #[test]
    fn files_that_are_to_be_kept_stay() {
        let world = World::new(20);
        let keeps = |name: &FileName| *name == file(0);
        let bounds = Bounds { bytes_max: 1, free_min: 0 };
        (0..20).for_each(|_| world.step(bounds, &keeps));
        assert_eq!(world.left(20), [0]);
    }

    #[test]
    fn a_file_that_was_read_lately_outlives_those_that_were_filled_later() {
        let world = World::new(20);
        world.now.fetch_add(40 * 3_600_000, Ordering::Relaxed);
        world.store.enter(&file(0), FileVersion { change: 1, size: PAGE_BYTES });
        world.store.save();
        let bounds = Bounds { bytes_max: 20_000, free_min: 0 };
        world.clean(bounds, &|_| false);
        let left = world.left(20);
        assert!(left.contains(&0) && left.len() < 20, "{left:?}");
    }

    #[test]
    fn pinned_files_stay_after_a_restart_and_a_change() {
        let world = World::new(20);
        assert!(world.store.set_pinned(&file(0), true) && !world.store.set_pinned(&file(99), true));
        world.store.enter(&file(0), FileVersion { change: 2, size: PAGE_BYTES });
        let epoch = world.store.enter(&file(0), FileVersion { change: 2, size: PAGE_BYTES });
        world.store.fill(&file(0), epoch, 0, &[2; PAGE_BYTES as usize]);
        world.store.save();
        let medium = Arc::clone(&world.medium) as Arc<dyn Medium>;
        let world = World { store: PageStore::new(medium, Arc::new(|| u64::MAX)), ..world };
        let bounds = Bounds { bytes_max: 1, free_min: 0 };
        (0..20).for_each(|_| world.step(bounds, &|_| false));
        assert_eq!(world.left(20), [0]);
        world.store.set_pinned(&file(0), false);
        world.store.save();
        (0..20).for_each(|_| world.step(bounds, &|_| false));
        assert!(world.left(20).is_empty());
    }

    #[test]
    fn damaged_entries_are_removed() {
        let world = World::new(3);
        world.medium.write(&file(1).paths().map, 10, &[0xff]).unwrap();
        let bounds = Bounds { bytes_max: u64::MAX, free_min: 0 };
        world.clean(bounds, &|_| false);
        assert_eq!(world.medium.used(&file(1).paths().data).unwrap(), 0);
        assert_eq!(world.left(1), [0]);
    }

    #[test]
    fn classes_double() {
        assert_eq!([0, 59, 60, 120, 3_600].map(class), [0, 0, 1, 2, 6]);
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }
}
