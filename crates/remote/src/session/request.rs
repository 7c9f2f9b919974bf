use comity_vfs::{DelegationKind, HeldLock, LockOutcome, LockRequest};

use super::job::OpenTask;
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
