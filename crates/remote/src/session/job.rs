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
    /// CLOSE of an open, with the stateid that the COMPOUND carries.
    Close(OpenKey, Stateid4),
    /// LOCK, LOCKU or LOCKT.
    Lock(LockTask),
    /// GET_DIR_DELEGATION.
    Delegate(DirectoryTask),
    /// DELEGRETURN.
    Return(ServerHandle),
    /// No call: a caller waits for the end of another request.
    Waiter,
    /// TEST_STATEID of these stateids.
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
    /// DESTROY_SESSION.
    DestroySession,
    /// DESTROY_CLIENTID.
    DestroyClient,
    /// A SEQUENCE that renews the lease.
    Renew,
}

impl Job {
    /// Returns whether it is part of recovery.
    pub(super) const fn is_recovery(&self) -> bool {
        match self {
            Self::ReclaimComplete => true,
            Self::Open(task) => matches!(task.claim, TaskClaim::Previous(_)),
            Self::Lock(task) => matches!(task.kind, LockTaskKind::Reclaim),
            _ => false,
        }
    }

    /// Returns whether it holds its open exclusively, so that other operations on the open wait for
    /// it.
    pub(super) const fn has_turn(&self) -> bool {
        match self {
            Self::Open(task) => task.has_turn,
            Self::Lock(task) => task.has_turn,
            Self::Close(..) | Self::Return(_) => true,
            _ => false,
        }
    }
}

/// A request for the delegation of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryTask {
    /// The directory.
    pub(crate) directory: ServerHandle,
    /// The caller whose credential is used for the request and the return.
    pub(crate) owner: Arc<OpenOwner>,
}

/// An OPEN at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenTask {
    /// The open-owner.
    pub(crate) owner: Arc<OpenOwner>,
    /// The file; `None` if it is opened by name.
    pub(crate) file: Option<ServerHandle>,
    /// The access.
    pub(crate) access: OpenAccess,
    /// The reason for the OPEN.
    pub(crate) claim: TaskClaim,
    /// True once the task holds its open exclusively.
    pub(super) has_turn: bool,
}

/// The reason why a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskClaim {
    /// A caller opens it; the open is counted as the caller's.
    Caller,
    /// A caller reads or writes it without having opened it.
    Use,
    /// A delegation is returned, so local opens must be made at the server.
    Delegation,
    /// The server has restarted: reclaim the open, and the delegation held before.
    Previous(Option<DelegationKind>),
}

impl OpenTask {
    /// An OPEN for a caller.
    pub(crate) const fn of_caller(
        owner: Arc<OpenOwner>,
        file: Option<ServerHandle>,
        access: OpenAccess,
        claim: TaskClaim,
    ) -> Self {
        Self { owner, file, access, claim, has_turn: false }
    }

    /// An OPEN by the client itself, which holds its open exclusively from the start.
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
