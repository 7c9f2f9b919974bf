//! Files held against other clients of Ceph that change them, by Ceph's read delegations.
//!
//! No file is held exclusively. libcephfs blocks a write to a file under a write delegation if
//! another client has taken a snapshot meanwhile, and recalls nothing: the write would wait until
//! the delegation is returned by a client that has no reason to.
//!
//! libcephfs blocks a change through this mount, too, while the file is held, so that the hold ends
//! before each change.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use comity_vfs::{FileHold, FileType, Handle, LocalUse, Result, Status};

use super::Ceph;
use super::ffi::{CephMount, ReadDelegation, Vino};
use super::files::{DataFile, FileUse};
use super::handle;
use super::limits::{HELD_FILES_MAX, HOLD_RESERVE, HOLD_WAIT_MAX, HOLD_WAIT_MIN};
use super::snapshot::check_current;
use crate::LeaseWatch;

/// Held files.
pub(super) struct CephHolds {
    /// The watch whose thread is woken by recalls; without it, no file is held.
    watch: Option<Arc<LeaseWatch>>,
    /// The time for which another client may wait for a file.
    pub(super) wait: Duration,
    recalled: Arc<RecalledFiles>,
    held: Mutex<HeldFiles>,
    /// The number of held files, which is read without the lock.
    count: AtomicUsize,
}

/// The files that Ceph has recalled, noted by its own threads. No call to libcephfs is made while
/// this is locked.
#[derive(Default)]
struct RecalledFiles(Mutex<Vec<Vino>>);

#[derive(Default)]
struct HeldFiles {
    files: HashMap<Vino, HeldFile>,
    /// Uses that were not reported yet.
    wanted: Vec<(Vino, LocalUse)>,
}

struct HeldFile {
    delegation: ReadDelegation,
    /// Keeps the file open.
    file: Arc<DataFile>,
    /// The time at which the recall was noticed.
    recalled: Option<Instant>,
}

impl CephHolds {
    /// Makes an empty table. It stays empty without a watch, or if Ceph leaves too little time for
    /// a recall.
    pub(super) fn new(watch: Option<Arc<LeaseWatch>>, mount: &CephMount) -> Self {
        let wait = watch.as_ref().and_then(|_| mount.allow_delegations());
        let wait = wait.unwrap_or_default().saturating_sub(HOLD_RESERVE).min(HOLD_WAIT_MAX);
        let watch = watch.filter(|_| wait >= HOLD_WAIT_MIN);
        let (held, count) = (Mutex::default(), AtomicUsize::new(0));
        Self { watch, wait, recalled: Arc::default(), held, count }
    }

    /// Returns whether a file is held.
    pub(super) fn has(&self, vino: Vino) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && self.held().files.contains_key(&vino)
    }

    /// Gives all files back.
    pub(super) fn release_all(&self) {
        let mut held = self.held();
        let all: Vec<Vino> = held.files.keys().copied().collect();
        let released: Vec<_> =
            all.into_iter().filter_map(|vino| self.remove(&mut held, vino)).collect();
        drop(held);
        drop(released);
    }

    fn release(&self, vino: Vino) {
        if self.count.load(Ordering::SeqCst) > 0 {
            let mut held = self.held();
            let released = self.remove(&mut held, vino);
            drop(held);
            drop(released);
        }
    }

    /// Takes a file out of the table, and gives its delegation back while the table is locked:
    /// libcephfs has one for each open file, and would give back that of the next hold. Returns the
    /// open file, which the caller drops when it has unlocked the table.
    fn remove(&self, held: &mut HeldFiles, vino: Vino) -> Option<Arc<DataFile>> {
        held.wanted.retain(|(wanted, _)| *wanted != vino);
        let HeldFile { delegation, file, .. } = held.files.remove(&vino)?;
        drop(delegation);
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(file)
    }

    /// Takes a file out of the table as [`Self::remove`] does, and has its delegations recalled.
    fn end(&self, held: &mut HeldFiles, vino: Vino) -> Option<Arc<DataFile>> {
        let ended = self.remove(held, vino)?;
        held.wanted.push((vino, LocalUse::Change));
        Some(ended)
    }

    /// Takes the notes about recalls.
    fn hear(&self, held: &mut HeldFiles) {
        let recalled = std::mem::take(&mut *self.recalled.lock());
        for vino in recalled {
            let file = held.files.get_mut(&vino).filter(|file| file.recalled.is_none());
            if let Some(file) = file {
                file.recalled = Some(Instant::now());
                held.wanted.push((vino, LocalUse::OpenWithin(self.wait)));
            }
        }
    }

    /// Returns the files whose recall has taken too long: Ceph would end the mount.
    fn late(&self, held: &HeldFiles) -> Vec<Vino> {
        let is_late =
            |file: &HeldFile| file.recalled.is_some_and(|since| since.elapsed() >= self.wait);
        held.files.iter().filter(|(_, file)| is_late(file)).map(|(vino, _)| *vino).collect()
    }

    /// Returns the files that Ceph may have given to other clients without a recall: it does so
    /// after a minute in which it had no word of this client, even if it was Ceph that was silent.
    fn lost(&self, held: &mut HeldFiles) -> Vec<Vino> {
        let is_lost = |file: &HeldFile| file.recalled.is_none() && file.delegation.renew().is_err();
        let lost = held.files.iter().filter(|(_, file)| is_lost(file));
        let mut lost: Vec<Vino> = lost.map(|(vino, _)| *vino).collect();
        // A file that was recalled a moment ago is not lost: the other client waits for it.
        self.hear(held);
        lost.retain(|vino| held.files.get(vino).is_some_and(|file| file.recalled.is_none()));
        lost
    }

    /// Returns whether a file is held, and no other client waits for it.
    fn stands(&self, vino: Vino) -> Option<bool> {
        let mut held = self.held();
        self.hear(&mut held);
        held.files.get(&vino).map(|file| file.recalled.is_none())
    }

    /// Takes Ceph's delegation of a file that is open for reading.
    fn begin(&self, vino: Vino, file: Arc<DataFile>) -> Result<bool> {
        let Some(watch) = self.watch.clone() else { return Ok(false) };
        // Take the lock first: a recall may arrive before the file is in the table.
        let mut held = self.held();
        if held.files.len() >= HELD_FILES_MAX {
            return Err(Status::Delay);
        }
        let recalled = Arc::clone(&self.recalled);
        let tell = move || {
            recalled.lock().push(vino);
            watch.wake();
        };
        let taken = ReadDelegation::take(&file.file, tell);
        let Ok(delegation) = taken else { return Ok(false) };
        self.count.fetch_add(1, Ordering::SeqCst);
        held.files.insert(vino, HeldFile { delegation, file, recalled: None });
        Ok(true)
    }

    /// Wakes the thread that asks for files that are wanted.
    fn wake(&self) {
        self.watch.iter().for_each(|watch| watch.wake());
    }

    fn held(&self) -> MutexGuard<'_, HeldFiles> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecalledFiles {
    fn lock(&self) -> MutexGuard<'_, Vec<Vino>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ceph {
    /// See [`comity_vfs::LocalLocks::hold_file`].
    pub(super) fn hold(&self, node: &Handle, hold: FileHold) -> Result<bool> {
        let vino = self.vino(node)?;
        match hold {
            FileHold::Free => self.holds.release(vino),
            FileHold::Shared => return self.hold_shared(vino),
            FileHold::Exclusive | FileHold::Directory(_) => {}
        }
        Ok(hold == FileHold::Free)
    }

    fn hold_shared(&self, vino: Vino) -> Result<bool> {
        let listens = |watch: &Arc<LeaseWatch>| watch.thread().is_some();
        // Two mounts of this process would wait for each other.
        let is_sole = self.siblings.mounts(self.volume) == 1;
        if !self.holds.watch.as_ref().is_some_and(listens)
            || !is_sole
            || check_current(vino).is_err()
        {
            return Ok(false);
        }
        if let Some(stands) = self.holds.stands(vino) {
            return Ok(stands);
        }
        let inode = self.inode(vino)?;
        if self.attr(&inode)?.file_type != FileType::Regular || !self.stop_writing(vino) {
            return Ok(false);
        }
        self.holds.begin(vino, self.data_file(vino, &inode, FileUse::Read)?)
    }

    /// Ends the hold of a file that is about to be changed through this mount. Its delegations are
    /// recalled.
    pub(super) fn end_hold(&self, vino: Vino) {
        if self.holds.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut held = self.holds.held();
        let ended = self.holds.end(&mut held, vino);
        drop(held);
        if ended.is_some() {
            self.holds.wake();
        }
    }

    /// Gives back files whose recall has taken too long, and those that Ceph may have given to
    /// others. Clients lose their delegations, if they have not lost them before.
    pub(super) fn end_late_holds(&self) {
        if self.holds.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut held = self.holds.held();
        self.holds.hear(&mut held);
        let (lost, late) = (self.holds.lost(&mut held), self.holds.late(&held));
        let ended = lost.iter().chain(&late);
        let ended: Vec<_> = ended.filter_map(|vino| self.holds.end(&mut held, *vino)).collect();
        drop(held);
        if !ended.is_empty() {
            let (late, lost) = (late.len(), lost.len());
            tracing::warn!(late, lost, "Ceph got files back before their delegations had ended");
            self.holds.wake();
        }
    }

    /// See [`comity_vfs::LocalLocks::poll_wanted`].
    pub(super) fn poll_recalled(&self) -> Option<(Handle, LocalUse)> {
        let mut held = self.holds.held();
        self.holds.hear(&mut held);
        let (vino, local) = held.wanted.pop()?;
        Some((handle::encode(self.volume, vino).ok()?, local))
    }
}
