use comity_vfs::{DelegationKind, DelegationNumber, HeldLock, LockOutcome, LockRequest};

use super::job::{DirectoryTask, OpenTask};
use crate::compound::{CompoundReply, CompoundRequest};
use crate::machine::CallFailure;
use crate::server_handle::ServerHandle;

/// A request of a caller.
#[derive(Debug)]
pub(crate) enum SessionRequest {
    /// A COMPOUND.
    Compound(CompoundRequest),
    /// An open, with its COMPOUND.
    Open(OpenTask, CompoundRequest),
    /// A delegation of a directory, with its COMPOUND.
    Delegate(DirectoryTask, CompoundRequest),
    /// Closes an open.
    Close(u64),
    /// Locks or unlocks bytes.
    Lock(LockRequest),
    /// Asks for a lock that conflicts with this one.
    FindLock(LockRequest),
    /// Returns a delegation.
    Return(ServerHandle),
    /// Gives back all that the client holds, and ends it.
    Leave,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum SessionAnswer {
    /// The reply to a COMPOUND.
    Reply(CompoundReply),
    /// The file is open.
    Opened(OpenAnswer),
    /// The reply to a COMPOUND that requested the delegation of a directory, and the grant.
    Delegated(CompoundReply, Option<DelegationNumber>),
    /// Success without a result.
    Done,
    /// The outcome of a lock or unlock.
    Lock(LockOutcome),
    /// The conflicting lock, if there is one.
    HeldLock(Option<HeldLock>),
}

/// The result of an open.
#[derive(Debug)]
pub(crate) struct OpenAnswer {
    /// The number of the caller's open.
    pub(crate) open: u64,
    /// The delegation that is held.
    pub(crate) delegation: Option<DelegationKind>,
    /// The reply; `None` if a delegation allowed the open.
    pub(crate) reply: Option<CompoundReply>,
}

/// The outcome of a request.
pub(crate) type SessionOutcome = Result<SessionAnswer, CallFailure>;
