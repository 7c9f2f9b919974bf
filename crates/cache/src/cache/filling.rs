//! The filler: it completes partly cached files while no program reads from the file system below.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_vfs::{Cred, Disk, Handle, Result, Status};

use super::Cache;
use super::attributes::version;
use super::data::CachedRead;
use crate::limits::{FILL_BYTES_MAX, FILLS_MAX, QUIET_TIME, TRANSFER_BYTES_MAX};

/// Files that programs have read in part.
#[derive(Default)]
pub(super) struct Filler {
    partial: Mutex<HashMap<Handle, Partial>>,
    /// The time at which a program last read from the file system below.
    busy: AtomicU64,
}

/// A partly cached file.
struct Partial {
    /// A caller that may read it.
    cred: Cred<Disk>,
    missing: u64,
    size: u64,
}

impl Filler {
    /// Notes that a program has read from the file system below.
    pub(super) fn note(&self, read: &CachedRead<'_>, missing: u64, now: u64) {
        self.busy.store(now, Ordering::Relaxed);
        let mut partial = self.lock();
        let fits = partial.len() < FILLS_MAX || partial.contains_key(read.node);
        if missing > 0 && fits && read.attr.size <= FILL_BYTES_MAX {
            let (cred, size) = (read.cred.clone(), read.attr.size);
            partial.insert(*read.node, Partial { cred, missing, size });
        } else if missing == 0 {
            partial.remove(read.node);
        }
    }

    /// The file with the fewest missing pages; among equals, the smallest.
    fn best(&self) -> Option<(Handle, Cred<Disk>)> {
        let partial = self.lock();
        let best = partial.iter().min_by_key(|(_, file)| (file.missing, file.size))?;
        Some((*best.0, best.1.cred.clone()))
    }

    /// Number of partly cached files.
    pub(super) fn partial_files(&self) -> u64 {
        self.lock().len() as u64
    }

    /// Stops completing a file.
    pub(super) fn forget(&self, node: &Handle) {
        self.lock().remove(node);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, Partial>> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// Reads one piece of the best file, if programs have been quiet for long enough.
    pub(super) fn fill_one(&self) {
        let quiet = self.now().saturating_sub(self.filler.busy.load(Ordering::Relaxed));
        if quiet < QUIET_TIME || !self.options.fills || !self.store.health().is_usable() {
            return;
        }
        let Some((node, cred)) = self.filler.best() else { return };
        match self.fill_piece(&cred, &node) {
            Ok(Some(_)) => {}
            // The file is complete, or cannot be completed until a program reads it again.
            Ok(None) | Err(_) => self.filler.forget(&node),
        }
    }

    /// Reads the first missing piece of a file; returns its end, or `None` if the file is complete.
    ///
    /// # Errors
    /// [`Status::NoSpc`] if the cache disk does not store it; those of the file system below.
    fn fill_piece(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Option<u64>> {
        let attr = self.attr(node)?;
        let epoch = self.store.enter(&self.file(node), version(&attr));
        let Some(range) = self.store.first_missing(&self.file(node), epoch) else {
            return Ok(None);
        };
        let range = range.start..range.end.min(range.start + TRANSFER_BYTES_MAX);
        let read = CachedRead { cred, node, attr, epoch, opened: false };
        let mut bytes = Vec::new();
        let is_same_version = self.fetch(&read, range.clone(), &mut bytes)?;
        let missing = self.store.first_missing(&self.file(node), epoch);
        if is_same_version && missing.is_some_and(|missing| missing.start == range.start) {
            return Err(Status::NoSpc);
        }
        Ok(Some(range.end))
    }

    /// Completes a file now. `progress` is called with the number of cached bytes and of all bytes,
    /// and may end the filling.
    ///
    /// # Errors
    /// Those of the file system below; [`Status::NoSpc`] if the cache disk stores no pages,
    /// [`Status::Delay`] if other clients keep changing the file.
    pub fn fill(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut before = None;
        while let Some(end) = self.fill_piece(cred, node)? {
            if before == Some(end) {
                return Err(Status::Delay);
            }
            before = Some(end);
            let size = self.attributes.last(node).map_or(end, |attr| attr.size);
            if progress(end, size).is_break() {
                break;
            }
        }
        Ok(())
    }
}
