//! The cache: an [`Fs`] over an `Fs`.

mod attributes;
mod data;
mod directories;
mod filling;
mod fs;
mod keeping;
mod names;
mod notices;
mod open_files;
mod recovery;
mod shown;
mod status;
#[cfg(test)]
mod tests;
mod unlisted;
mod writing;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use comity_vfs::{Fs, Handle, OpenId, Target};
use quick_cache::sync::Cache as QuickCache;

use crate::attribute_cache::AttributeCache;
use crate::cleaner::{Bounds, Cleaner};
use crate::counters::CacheCounters;
use crate::directory_looks::DirectoryLooks;
use crate::journal::Journal;
use crate::key::FileName;
use crate::limits::{CLEANER_PAUSE, LINKS_MAX, VOLUMES_MAX};
use crate::listing_cache::ListingCache;
use crate::medium::Medium;
use crate::name_cache::NameCache;
use crate::options::{CacheOptions, Clock, WriteMode};
use crate::page_store::PageStore;
use crate::verdict_cache::VerdictCache;
use crate::write_back::DirtyFiles;

pub use keeping::VerifyStep;

/// A file system that caches another: data on a disk, which survives restarts; attributes, names
/// and rights in memory.
///
/// The cached state of a file or a directory is valid while it is delegated
/// ([`comity_vfs::OpenFiles::delegation`], [`comity_vfs::OpenFiles::directory_grant`]), and
/// otherwise for a time ([`CacheOptions::times`]). After that time its attributes are fetched
/// again, and its pages are valid if the change attribute is still theirs.
pub struct Cache {
    fs: Arc<dyn Fs>,
    store: PageStore,
    attributes: AttributeCache,
    names: NameCache,
    listings: ListingCache,
    looks: DirectoryLooks,
    notices: notices::NoticeTurn,
    verdicts: VerdictCache,
    /// Targets of symbolic links, each with the change attribute of the link when it was read.
    links: QuickCache<Handle, (u64, Target)>,
    /// True for a volume in which names that differ in a byte are different names.
    exact_volumes: QuickCache<u64, bool>,
    marks: shown::Marks,
    dirty: DirtyFiles,
    journal: Option<Journal>,
    cleaner: Cleaner,
    filler: filling::Filler,
    /// The time of the cleaner's next round.
    clean_at: AtomicU64,
    medium: Arc<dyn Medium>,
    /// The file of each open, so that a lock can be attributed to its file.
    opened: Mutex<HashMap<OpenId, Handle>>,
    options: CacheOptions,
    clock: Clock,
    counters: CacheCounters,
}

impl Cache {
    /// Makes a cache of `fs` on `medium`, with the contents that an earlier run left there. Data in
    /// the journal that was not written to `fs` is written now, or kept as a conflict.
    #[must_use]
    pub fn new(
        fs: Arc<dyn Fs>,
        medium: Arc<dyn Medium>,
        options: CacheOptions,
        clock: Clock,
    ) -> Self {
        let (journal, left) = match Journal::open(Arc::clone(&medium)) {
            Ok((journal, left)) => (Some(journal), left),
            Err(error) => {
                Self::journal_failed(&error);
                (None, Vec::new())
            }
        };
        let cache = Self {
            fs,
            store: PageStore::new(Arc::clone(&medium), Arc::clone(&clock)),
            attributes: AttributeCache::new(options.times),
            names: NameCache::new(),
            listings: ListingCache::new(),
            looks: DirectoryLooks::new(),
            notices: notices::NoticeTurn::default(),
            verdicts: VerdictCache::new(),
            links: QuickCache::new(LINKS_MAX),
            exact_volumes: QuickCache::new(VOLUMES_MAX),
            marks: shown::Marks::new(),
            dirty: DirtyFiles::default(),
            journal,
            cleaner: Cleaner::default(),
            filler: filling::Filler::default(),
            clean_at: AtomicU64::new(0),
            medium,
            opened: Mutex::default(),
            options,
            clock,
            counters: CacheCounters::default(),
        };
        cache.recover(left);
        cache
    }

    /// Does what is due: sends data that has waited long enough, and saves headers to the disk.
    /// Must be called about once a second, by a thread of its own.
    pub fn tick(&self) {
        self.send_old();
        self.store.save();
        self.clean();
        self.fill_one();
    }

    /// Does one step of the cleaner, if a round is due or under way. Pages of files with unsent
    /// data are kept; the unsent data itself is stored elsewhere and is never removed.
    fn clean(&self) {
        if self.store.health().take_full() {
            self.cleaner.hurry();
            self.clean_at.store(0, Ordering::Relaxed);
        }
        if !self.store.health().is_usable() || self.now() < self.clean_at.load(Ordering::Relaxed) {
            return;
        }
        let CacheOptions { bytes_max, free_min, .. } = self.options;
        let bounds = Bounds { bytes_max, free_min };
        let keeps = |file: &FileName| self.dirty.get(&file.handle).is_some();
        if !self.cleaner.step(&self.store, bounds, &keeps) {
            self.clean_at.store(self.now() + CLEANER_PAUSE, Ordering::Relaxed);
        }
    }

    /// The journal, if writes are answered from it.
    fn promises(&self) -> Option<&Journal> {
        self.journal.as_ref().filter(|_| self.options.write == WriteMode::Journal)
    }

    fn now(&self) -> u64 {
        (self.clock)()
    }

    fn file(&self, node: &Handle) -> FileName {
        FileName { volume: self.fs.volume(node), handle: *node }
    }

    /// Returns whether the cached state of a file or a directory is valid now, because it was
    /// fetched under the delegation that is held.
    fn is_true(&self, node: &Handle) -> bool {
        self.fs.open_files().is_some_and(|files| self.is_granted(files, node))
    }

    /// Returns whether a delegation keeps other clients from changing a file or a directory. Its
    /// cached attributes may be from before the delegation.
    fn is_delegated(&self, node: &Handle) -> bool {
        self.fs
            .open_files()
            .is_some_and(|files| files.delegation(node).is_some() || self.is_granted(files, node))
    }
}

impl Drop for Cache {
    /// Sends unsent data, because programs expect that their answered writes are stored.
    fn drop(&mut self) {
        let failed = self.finish();
        if failed > 0 {
            tracing::error!(failed, "files have data that could not be written");
        }
    }
}
