//! The part of all mounts of one file system in this process that is common to them: the same file
//! may be in several exports.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::changes::ChangeCounters;
use super::ffi::{CephFile, Vino};
use super::mount_number::{MountNumber, MountNumbers};
use crate::sync_errors::SyncErrors;

/// The locks of clients and the failures of barriers, for all mounts of this process.
#[derive(Debug, Clone, Default)]
pub struct CephSiblings(Arc<Common>);

#[derive(Default)]
struct Common {
    table: Mutex<Siblings>,
    numbers: MountNumbers,
    failures: SyncErrors,
    changes: ChangeCounters,
}

/// The table of the mounts and of the locks.
#[derive(Default)]
pub(super) struct Siblings {
    /// Files with locked bytes, by volume. All locks of a file belong to one open file, and end
    /// when it is closed.
    pub(super) locked: HashMap<(u64, Vino), Arc<CephFile>>,
    /// The number of mounts of each volume.
    mounts: HashMap<u64, usize>,
}

impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Common").field("failures", &self.failures).finish_non_exhaustive()
    }
}

impl CephSiblings {
    /// Takes a number for a mount.
    pub(super) fn take_number(&self) -> MountNumber {
        self.0.numbers.take()
    }

    /// Notes a mount of a volume.
    pub(super) fn enter(&self, volume: u64) {
        *self.table().mounts.entry(volume).or_default() += 1;
    }

    /// Notes the end of a mount. With the last one of a volume the locks end.
    pub(super) fn leave(&self, volume: u64) {
        let mut table = self.table();
        let left = table.mounts.get(&volume).map_or(0, |mounts| mounts.saturating_sub(1));
        table.mounts.insert(volume, left);
        let mut ended = Vec::new();
        if left == 0 {
            table.mounts.remove(&volume);
            ended.extend(table.locked.extract_if(|(of, _), _| *of == volume));
        }
        drop(table);
        drop(ended);
    }

    /// The counters of changes under way.
    pub(super) fn changes(&self) -> &ChangeCounters {
        &self.0.changes
    }

    /// Returns the number of mounts of a volume.
    pub(super) fn mounts(&self, volume: u64) -> usize {
        self.table().mounts.get(&volume).copied().unwrap_or_default()
    }

    /// The failures of barriers.
    pub(super) fn failures(&self) -> &SyncErrors {
        &self.0.failures
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Siblings> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
