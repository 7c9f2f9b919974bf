use comity_vfs::{DelegationKind, DelegationNumber, HeldLock, LockOutcome, LockRequest};

use super::job::{DirectoryTask, OpenTask};
use crate::compound::{CompoundReply, CompoundRequest};
use crate::machine::CallFailure;
use crate::server_handle::ServerHandle;

/// A request of a caller's.
#[derive(Debug)]
pub(crate) enum SessionRequest {
    /// A COMPOUND.
    Compound(CompoundRequest),
    /// An open, and the COMPOUND that asks for it.
    Open(OpenTask, CompoundRequest),
    /// The delegation of a directory, and the COMPOUND that asks for it.
    Delegate(DirectoryTask, CompoundRequest),
    /// The end of an open.
    Close(u64),
    /// A lock, or the end of one.
    Lock(LockRequest),
    /// A question for the lock that stands against one.
    FindLock(LockRequest),
    /// The end of a delegation.
    Return(ServerHandle),
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum SessionAnswer {
    /// The reply to a COMPOUND.
    Reply(CompoundReply),
    /// A file is open.
    Opened(OpenAnswer),
    /// The reply to a COMPOUND that asked for the delegation of a directory, and what was granted.
    Delegated(CompoundReply, Option<DelegationNumber>),
    /// All is done.
    Done,
    /// The outcome of locking.
    Lock(LockOutcome),
    /// The lock that stands against one.
    HeldLock(Option<HeldLock>),
}

/// A file that is open.
#[derive(Debug)]
pub(crate) struct OpenAnswer {
    /// The number of the caller's open.
    pub(crate) open: u64,
    /// The delegation that is held.
    pub(crate) delegation: Option<DelegationKind>,
    /// The reply; `None` if the server was not asked.
    pub(crate) reply: Option<CompoundReply>,
}

/// The outcome of a request.
pub(crate) type SessionOutcome = Result<SessionAnswer, CallFailure>;
