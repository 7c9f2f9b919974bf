use std::sync::Arc;

use comity_proto::nfs4::{Sessionid4, Stateid4};
use comity_vfs::{DelegationKind, LockRequest, OpenAccess};

use super::file_states::OpenKey;
use crate::calls::LinkPlace;
use crate::compound::OpenOwner;
use crate::server_handle::ServerHandle;

/// The purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Job {
    /// A caller's verb.
    Verb,
    /// OPEN.
    Open(OpenTask),
    /// CLOSE of an open, by the stateid that it had when the COMPOUND was put together.
    Close(OpenKey, Stateid4),
    /// LOCK, LOCKU or LOCKT.
    Lock(LockTask),
    /// GET_DIR_DELEGATION.
    Delegate(DirectoryTask),
    /// DELEGRETURN.
    Return(ServerHandle),
    /// Nothing: a caller waits for the end of another request.
    Waiter,
    /// TEST_STATEID of these.
    Test(Arc<[Stateid4]>),
    /// FREE_STATEID.
    Free,
    /// EXCHANGE_ID.
    Introduce,
    /// CREATE_SESSION.
    CreateSession,
    /// BIND_CONN_TO_SESSION of this connection and session.
    Bind(LinkPlace, Sessionid4),
    /// RECLAIM_COMPLETE.
    ReclaimComplete,
    /// A SEQUENCE that renews the lease.
    Renew,
}

impl Job {
    /// Returns whether it is done while the client recovers.
    pub(super) const fn is_recovery(&self) -> bool {
        match self {
            Self::ReclaimComplete => true,
            Self::Open(task) => matches!(task.claim, TaskClaim::Previous(_)),
            Self::Lock(task) => matches!(task.kind, LockTaskKind::Reclaim),
            _ => false,
        }
    }

    /// Returns whether others wait for it, because it changes the state of an open.
    pub(super) const fn has_turn(&self) -> bool {
        match self {
            Self::Open(task) => task.has_turn,
            Self::Lock(task) => task.has_turn,
            Self::Close(..) | Self::Return(_) => true,
            _ => false,
        }
    }
}

/// A directory whose delegation is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryTask {
    /// The directory.
    pub(crate) directory: ServerHandle,
    /// The caller in whose name it is asked for, and given back.
    pub(crate) owner: Arc<OpenOwner>,
}

/// A file that is to be opened at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenTask {
    /// The open-owner.
    pub(crate) owner: Arc<OpenOwner>,
    /// The file; `None` if it is opened by name.
    pub(crate) file: Option<ServerHandle>,
    /// The access.
    pub(crate) access: OpenAccess,
    /// By what it is opened.
    pub(crate) claim: TaskClaim,
    /// True once it is this task's turn to change the open.
    pub(super) has_turn: bool,
}

/// By what a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskClaim {
    /// A caller's right; the open is counted as the caller's.
    Caller,
    /// The right of a caller who reads or writes without having opened.
    Use,
    /// A delegation that is given back.
    Delegation,
    /// An open before the server restarted, and the delegation that was held then.
    Previous(Option<DelegationKind>),
}

impl OpenTask {
    /// A caller's open.
    pub(crate) const fn of_caller(
        owner: Arc<OpenOwner>,
        file: Option<ServerHandle>,
        access: OpenAccess,
        claim: TaskClaim,
    ) -> Self {
        Self { owner, file, access, claim, has_turn: false }
    }

    /// An open of the client's own, whose turn it is.
    pub(super) const fn own(
        owner: Arc<OpenOwner>,
        file: ServerHandle,
        access: OpenAccess,
        claim: TaskClaim,
    ) -> Self {
        Self { owner, file: Some(file), access, claim, has_turn: true }
    }
}

/// An operation on locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LockTask {
    pub(super) kind: LockTaskKind,
    /// The open.
    pub(super) key: OpenKey,
    pub(super) wanted: LockRequest,
    pub(super) has_turn: bool,
}

/// The kind of an operation on locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockTaskKind {
    /// LOCK.
    Lock,
    /// LOCK of a lock that was held before the server restarted.
    Reclaim,
    /// LOCKU.
    Unlock,
    /// LOCKT.
    Find,
}
