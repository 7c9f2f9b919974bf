use std::fmt;

/// The reason why an operation on state is refused. Each variant is the `nfsstat4` of its name (RFC
/// 8881, 15.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Error {
    /// An administrator revoked the state.
    AdminRevoked,
    /// The slot number is above the client's own highest slot, or above the table.
    BadHighSlot,
    /// The seqid of an owner of minor version 0 is out of sequence.
    BadSeqid,
    /// The client has no layout of this range and iomode.
    BadLayout,
    /// The session does not exist.
    BadSession,
    /// The slot does not exist.
    BadSlot,
    /// The server never gave out this stateid, or its state has ended.
    BadStateid,
    /// The client has state and cannot be destroyed.
    ClientidBusy,
    /// Another principal has the owner id.
    ClidInuse,
    /// The client has already sent RECLAIM_COMPLETE.
    CompleteAlready,
    /// The client asks about a back channel that it does not have.
    CbPathDown,
    /// The connection is not bound to the session (`CONN_NOT_BOUND_TO_SESSION`).
    ConnNotBound,
    /// The client should try again later.
    Delay,
    /// The delegation was revoked.
    DelegRevoked,
    /// The lease has expired and the state was forgotten.
    Expired,
    /// The operation is refused until the grace period ends.
    Grace,
    /// The arguments are invalid.
    Inval,
    /// An operation that conflicts with layouts of the file was asked for a moment ago.
    LayoutTryLater,
    /// The lease was renewed, but some state has moved to another server.
    LeaseMoved,
    /// The client still has locks of an open or owner that it closes or releases.
    LocksHeld,
    /// The object does not exist.
    Noent,
    /// The grace period is over.
    NoGrace,
    /// The verifier differs.
    NotSame,
    /// The stateid was replaced by a newer one.
    OldStateid,
    /// The file is not open for this access.
    Openmode,
    /// The principal differs.
    Perm,
    /// Layouts of the file are being recalled, or one was revoked and its data servers do not know.
    RecallConflict,
    /// The client had nothing to reclaim.
    ReclaimBad,
    /// Another client holds the state that is reclaimed.
    ReclaimConflict,
    /// The request is longer than the session allows.
    ReqTooBig,
    /// A bound of the server is reached.
    Resource,
    /// The retry differs from the original request.
    SeqFalseRetry,
    /// The seqid is neither the next one of the slot nor the last one.
    SeqMisordered,
    /// A share or deny mode of another open conflicts.
    ShareDenied,
    /// A bound of the server is reached.
    Nospc,
    /// The clientid was given out before the server restarted.
    StaleClientid,
    /// The stateid was given out before the server restarted.
    StaleStateid,
    /// The COMPOUND has more operations than the session allows.
    TooManyOps,
    /// The requested size of replies is too small for any operation.
    Toosmall,
    /// The state belongs to another principal.
    WrongCred,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// The result of an operation on state.
pub type Result<T, E = Error> = std::result::Result<T, E>;
