//! Files that clients have open, locked or delegated.

mod children;
mod delegations;
mod exported;
mod holders;
mod layouts;
mod locks;
mod notices;
mod share;
mod table;
mod unsettled_size;

pub(crate) use children::{Children, TooMany};
pub use delegations::DelegationKind;
pub(crate) use delegations::{Delegated, RESTING_MAX, Recall, Writer, WriterReply};
pub use exported::{
    ExportedFile, ExportedRecall, ExportedWait, ExportedWriter, ExportedWriterReply,
};
pub(crate) use layouts::{Layouts, NoLayout};
pub(crate) use locks::Locks;
pub(crate) use notices::Notices;
pub use share::Share;
pub(crate) use share::share_of;
pub(crate) use table::Files;
pub(crate) use unsettled_size::SizeStep;

use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Mutex, MutexGuard};
use crate::table::lock;
use crate::{ClientId, FileKey};
use delegations::Delegations;
use share::Shares;

/// A file. A thread that holds its lock must not take the lock of a client.
pub(crate) struct File {
    /// The key, with the number of the export through which it was first used. The file is
    /// delegated only through this export: a client sees two exports as two file systems, and would
    /// not notice its own changes through the other one.
    pub(crate) key: FileKey,
    state: Mutex<FileState>,
}

/// A state, by its client and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) client: ClientId,
    pub(crate) state: u32,
}

/// Opens, locks, delegations and layouts of a file.
pub(crate) struct FileState {
    pub(crate) shares: Shares,
    pub(crate) locks: Locks,
    pub(crate) delegations: Delegations,
    pub(crate) layouts: Layouts,
    /// True if it was opened through another export than that of its key.
    pub(crate) by_many_exports: bool,
}

impl File {
    fn new(key: FileKey, offer: Duration) -> Self {
        let locks = Locks::new(offer);
        let (shares, delegations) = (Shares::default(), Delegations::default());
        let layouts = Layouts::default();
        let state = FileState { shares, locks, delegations, layouts, by_many_exports: false };
        Self { key, state: Mutex::new(state) }
    }

    /// Makes a placeholder for a state that is closed or revoked. It has the key of the file, and
    /// does not keep the real file in the table.
    pub(crate) fn placeholder(key: FileKey) -> Arc<Self> {
        Arc::new(Self::new(key, Duration::ZERO))
    }

    /// Returns `client` if its own delegation covers its operations through this key. Returns none
    /// if the operations come through another export than the delegation.
    pub(crate) fn covered(&self, key: &FileKey, client: Option<ClientId>) -> Option<ClientId> {
        client.filter(|_| key.export == self.key.export)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FileState> {
        lock(&self.state)
    }
}

impl FileState {
    /// Returns whether no client has state of the file.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        self.shares.is_empty()
            && self.locks.is_empty()
            && self.layouts.is_idle(now)
            && self.delegations.is_idle(now)
    }

    /// Returns whether a tick may change the file.
    pub(crate) fn has_deadline(&self) -> bool {
        self.locks.deadline().is_some()
            || self.delegations.has_deadline()
            || self.layouts.has_deadline()
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({:?})", self.key)
    }
}
