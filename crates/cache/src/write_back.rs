//! Files with unsent data: state under locks, without I/O.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Attr, Cred, DelegationNumber, Disk, Handle, Result, Time};

use crate::dirty::Extents;
use crate::file_turn::{FileTurn, FileTurnGuard};
use crate::losses::Losses;

/// All files with unsent data.
#[derive(Default)]
pub(crate) struct DirtyFiles {
    files: Mutex<HashMap<Handle, KnownDirty>>,
    /// Bytes of unsent data of all files.
    bytes: AtomicU64,
}

/// A file and the number of its users.
struct KnownDirty {
    file: Arc<DirtyFile>,
    users: usize,
}

/// A use of a file, during which the file stays in the table. After the last use it is removed if
/// it has no unsent data and no loss to report.
pub(crate) struct InUse<'a> {
    files: &'a DirtyFiles,
    node: Handle,
    file: Arc<DirtyFile>,
}

impl Deref for InUse<'_> {
    type Target = DirtyFile;

    fn deref(&self) -> &DirtyFile {
        &self.file
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.files.leave(&self.node);
    }
}

/// A file with unsent data.
pub(crate) struct DirtyFile {
    state: Mutex<DirtyState>,
    /// Held while data is sent, so that one thread at a time sends.
    turn: FileTurn,
    /// Held while data is added, so that the journal and the state have the same order.
    order: FileTurn,
}

/// The version of a file that data was written over.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BaseVersion {
    /// The change attribute.
    pub(crate) change: u64,
    /// Its size, mtime and ctime, unless it is known from the journal.
    times: Option<(u64, Time, Time)>,
}

impl BaseVersion {
    pub(crate) const fn of(attr: &Attr<Disk>) -> Self {
        Self { change: attr.change, times: Some((attr.size, attr.mtime, attr.ctime)) }
    }

    /// A version of which only the change attribute is known.
    pub(crate) const fn of_change(change: u64) -> Self {
        Self { change, times: None }
    }

    /// Returns whether a file with these attributes has the data of this version. If another client
    /// sets an attribute, such as the owner, or makes a link, the change attribute and the ctime
    /// change, and the mtime does not.
    pub(crate) fn has_data_of(&self, attr: &Attr<Disk>) -> bool {
        let has_same_data =
            |(size, mtime, ctime)| (size, mtime) == (attr.size, attr.mtime) && ctime != attr.ctime;
        self.change == attr.change || self.times.is_some_and(has_same_data)
    }
}

/// The unsent data of a file.
pub(crate) struct DirtyState {
    /// Data that waits to be sent.
    pub(crate) waiting: Extents,
    /// Data that is being sent; `waiting` is newer.
    pub(crate) sending: Extents,
    /// The time of the oldest data, in milliseconds.
    pub(crate) since: u64,
    /// The last writer.
    pub(crate) cred: Cred<Disk>,
    /// The time of the last write.
    pub(crate) written: Time,
    /// The version that the data was written over, or that parts of it were sent to.
    pub(crate) base: BaseVersion,
    /// The delegation under which the file was version `base`.
    pub(crate) grant: Option<DelegationNumber>,
    /// The last record of the journal with data of this file.
    pub(crate) record: u64,
    /// Data that could not be stored in the file.
    pub(crate) losses: Losses,
    /// True if another client may have changed the file: data is sent only if its change attribute
    /// is still `base`.
    pub(crate) doubtful: bool,
}

impl DirtyState {
    /// Prepares for new data over this version and under this delegation; returns the change
    /// attribute that the unsent data was written over.
    pub(crate) fn begin(
        &mut self,
        (version, grant): (BaseVersion, Option<DelegationNumber>),
        now: u64,
    ) -> u64 {
        if self.is_clean() {
            (self.since, self.base, self.grant) = (now, version, grant);
        }
        self.base.change
    }

    /// Notes a part of the data that was sent: it has changed the file from one change attribute to
    /// another version. Under the delegation of `base` no other client has changed the file before.
    pub(crate) fn note_sent(
        &mut self,
        (before, after): (Option<u64>, Option<BaseVersion>),
        grant: Option<DelegationNumber>,
    ) {
        let is_known = before == Some(self.base.change);
        let is_ours = is_known || (grant.is_some() && grant == self.grant);
        if is_ours && let Some(after) = after {
            self.base = after;
        }
    }

    /// Returns whether another client may have changed the file, which is delegated to this one by
    /// `grant` now.
    pub(crate) fn is_in_doubt(&mut self, grant: Option<DelegationNumber>) -> bool {
        self.doubtful |= self.grant.is_some() && self.grant != grant;
        self.doubtful
    }

    /// Returns whether there is no unsent data.
    pub(crate) const fn is_clean(&self) -> bool {
        self.waiting.is_empty() && self.sending.is_empty()
    }

    /// The end of the unsent data.
    pub(crate) fn end(&self) -> u64 {
        self.waiting.end().max(self.sending.end())
    }
}

impl DirtyFile {
    fn new(cred: &Cred<Disk>, now: u64) -> Self {
        let state = DirtyState {
            waiting: Extents::default(),
            sending: Extents::default(),
            since: now,
            cred: cred.clone(),
            written: Time::default(),
            base: BaseVersion::default(),
            grant: None,
            record: 0,
            losses: Losses::default(),
            doubtful: false,
        };
        Self { state: Mutex::new(state), turn: FileTurn::default(), order: FileTurn::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, DirtyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the order of new data.
    ///
    /// # Errors
    /// [`comity_vfs::Status::Interrupted`].
    pub(crate) fn order(&self) -> Result<FileTurnGuard<'_>> {
        self.order.take()
    }

    /// Locks sending.
    ///
    /// # Errors
    /// [`comity_vfs::Status::Interrupted`].
    pub(crate) fn turn(&self) -> Result<FileTurnGuard<'_>> {
        self.turn.take()
    }
}

impl DirtyFiles {
    /// Returns a file if it is in the table.
    pub(crate) fn get(&self, node: &Handle) -> Option<InUse<'_>> {
        self.lock().get_mut(node).map(|known| self.take(node, known))
    }

    /// Returns a file; adds it to the table if needed.
    pub(crate) fn enter(&self, node: &Handle, cred: &Cred<Disk>, now: u64) -> InUse<'_> {
        let new = || KnownDirty { file: Arc::new(DirtyFile::new(cred, now)), users: 0 };
        self.take(node, self.lock().entry(*node).or_insert_with(new))
    }

    fn take(&self, node: &Handle, known: &mut KnownDirty) -> InUse<'_> {
        known.users += 1;
        InUse { files: self, node: *node, file: Arc::clone(&known.file) }
    }

    fn leave(&self, node: &Handle) {
        let mut files = self.lock();
        let Some(known) = files.get_mut(node) else { return };
        known.users -= 1;
        let is_done = known.users == 0 && {
            let state = known.file.lock();
            state.is_clean() && !state.losses.awaits_report()
        };
        if is_done {
            files.remove(node);
        }
    }

    /// The number of threads that wait to send data of a file.
    #[cfg(test)]
    pub(crate) fn waiting_senders(&self, node: &Handle) -> usize {
        self.lock().get(node).map_or(0, |known| known.file.turn.waiting())
    }

    /// Returns all files.
    pub(crate) fn all(&self) -> Vec<(Handle, InUse<'_>)> {
        let mut files = self.lock();
        files.iter_mut().map(|(node, known)| (*node, self.take(node, known))).collect()
    }

    /// Bytes of unsent data of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adjusts the number of bytes by the change of one file.
    pub(crate) fn count(&self, before: u64, after: u64) {
        self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, KnownDirty>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
