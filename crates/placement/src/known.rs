//! The table of placed files in memory. Placements that differ only in their settings share it, so
//! that calls that began before a reload and calls after it agree.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::Handle;
use quick_cache::sync::Cache;

use crate::broken_files::BrokenFiles;
use crate::drained::DrainedServers;
use crate::holds::Holds;
use crate::limits::{FILE_LOCKS, MIRROR_LOCKS, RECORDS_MAX};
use crate::names::FileNames;
use crate::record::PlaceRecord;
use crate::shards::shard_of;
use crate::used_space::UsedSpace;

/// The files of a placement as far as they are known.
pub(crate) struct KnownFiles {
    /// The places of files; `None` for files without one.
    pub(crate) records: Cache<Handle, Option<Arc<PlaceRecord>>>,
    pub(crate) names: FileNames,
    pub(crate) used: UsedSpace,
    pub(crate) holds: Holds,
    pub(crate) drained: DrainedServers,
    pub(crate) broken: BrokenFiles,
    /// Locks for changes of files, each with the number of truncations done while it was held.
    locks: [Mutex<u64>; FILE_LOCKS],
    mirror_locks: [Mutex<()>; MIRROR_LOCKS],
}

impl KnownFiles {
    pub(crate) fn new() -> Self {
        Self {
            records: Cache::new(RECORDS_MAX),
            names: FileNames::new(),
            used: UsedSpace::new(),
            holds: Holds::default(),
            drained: DrainedServers::default(),
            broken: BrokenFiles::default(),
            locks: [const { Mutex::new(0) }; FILE_LOCKS],
            mirror_locks: [const { Mutex::new(()) }; MIRROR_LOCKS],
        }
    }

    /// Lets one thread at a time change the size or the place of a file. A thread that truncates
    /// the file counts that in the guard, before it begins.
    pub(crate) fn lock(&self, file: &Handle) -> MutexGuard<'_, u64> {
        shard_of(&self.locks, file).lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Lets one thread at a time change the bytes of a mirrored file, so that changes reach all
    /// mirrors in the same order. A thread that has this does not take [`KnownFiles::lock`].
    pub(crate) fn lock_mirrors(&self, file: &Handle) -> MutexGuard<'_, ()> {
        shard_of(&self.mirror_locks, file).lock().unwrap_or_else(PoisonError::into_inner)
    }
}
