//! Files that clients have open, locked or delegated.

mod delegations;
mod holders;
mod locks;
mod share;
mod table;

pub use delegations::DelegationKind;
pub(crate) use delegations::{Delegated, Recall, WriterReply};
pub(crate) use locks::Locks;
pub use share::Share;
pub(crate) use share::share_of;
pub(crate) use table::Files;

use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Mutex, MutexGuard};
use crate::table::lock;
use crate::{ClientId, FileKey};
use delegations::Delegations;
use share::Shares;

/// A file. Its lock is taken under a client's, never the other way round.
pub(crate) struct File {
    /// With the export by which it came into use. Only by this one is it delegated: two exports are
    /// two file systems to a client, which would not see what it does itself by the other.
    pub(crate) key: FileKey,
    state: Mutex<FileState>,
}

/// A state by its client and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) client: ClientId,
    pub(crate) state: u32,
}

/// Opens, locks and delegations of a file.
pub(crate) struct FileState {
    pub(crate) shares: Shares,
    pub(crate) locks: Locks,
    pub(crate) delegations: Delegations,
    /// True if it was opened by another export than that of its key.
    pub(crate) by_many_exports: bool,
}

impl File {
    fn new(key: FileKey, offer: Duration) -> Self {
        let locks = Locks::new(offer);
        let (shares, delegations) = (Shares::default(), Delegations::default());
        let state = FileState { shares, locks, delegations, by_many_exports: false };
        Self { key, state: Mutex::new(state) }
    }

    /// Makes a placeholder for a state that is only remembered: it has the key of the file, and
    /// does not keep the real one in the table.
    pub(crate) fn placeholder(key: FileKey) -> Arc<Self> {
        Arc::new(Self::new(key, Duration::ZERO))
    }

    /// Returns `client` if its own delegation covers its operations by this key; none if it comes
    /// by another export than the file is delegated by.
    pub(crate) fn covered(&self, key: &FileKey, client: Option<ClientId>) -> Option<ClientId> {
        client.filter(|_| key.export == self.key.export)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FileState> {
        lock(&self.state)
    }
}

impl FileState {
    /// Returns whether no client has anything of it.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        self.shares.is_empty() && self.locks.is_empty() && self.delegations.is_idle(now)
    }

    /// Returns whether a tick may change it.
    pub(crate) fn has_deadline(&self) -> bool {
        self.locks.deadline().is_some() || self.delegations.has_deadline()
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({:?})", self.key)
    }
}
