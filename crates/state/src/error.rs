use std::fmt;

/// Why an operation on state is refused; each is the `nfsstat4` of its name (RFC 8881, 15.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Error {
    /// The state was revoked by an administrator.
    AdminRevoked,
    /// A slot number above the client's own highest, or above the table.
    BadHighSlot,
    /// The sequence of an owner of 4.0 is broken.
    BadSeqid,
    /// No such session.
    BadSession,
    /// No such slot.
    BadSlot,
    /// A stateid that this server never gave out, or that names a state that is gone.
    BadStateid,
    /// The client has state and cannot be destroyed.
    ClientidBusy,
    /// The owner id is another principal's.
    ClidInuse,
    /// RECLAIM_COMPLETE was sent before.
    CompleteAlready,
    /// The client asks for a back channel it does not have.
    CbPathDown,
    /// The connection is none of the session's (`CONN_NOT_BOUND_TO_SESSION`).
    ConnNotBound,
    /// Later.
    Delay,
    /// The delegation was revoked.
    DelegRevoked,
    /// The lease is over and the state gone.
    Expired,
    /// Not before the grace period is over.
    Grace,
    /// Arguments that make no sense.
    Inval,
    /// Locks stand in the way of closing or releasing.
    LocksHeld,
    /// There is no such thing.
    Noent,
    /// Reclaims are over.
    NoGrace,
    /// The verifier is another.
    NotSame,
    /// A stateid that has been replaced.
    OldStateid,
    /// The file is not open for this.
    Openmode,
    /// The principal is another.
    Perm,
    /// The client had nothing to reclaim.
    ReclaimBad,
    /// Another client holds the state that is reclaimed.
    ReclaimConflict,
    /// A request longer than was agreed on.
    ReqTooBig,
    /// A bound of the server is reached.
    Resource,
    /// A retry that asks for something else.
    SeqFalseRetry,
    /// Neither the next request of a slot nor its last.
    SeqMisordered,
    /// A share or deny mode of another open stands against it.
    ShareDenied,
    /// A bound of the server is reached.
    Nospc,
    /// A clientid of another life of the server.
    StaleClientid,
    /// A stateid of another life of the server.
    StaleStateid,
    /// More operations than were agreed on.
    TooManyOps,
    /// Replies of a session would be too small for anything.
    Toosmall,
    /// The state is another principal's.
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
