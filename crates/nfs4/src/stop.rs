use comity_coherence::Refused;
use comity_proto::nfs4::Nfsstat4;
use comity_state::Error;
use comity_vfs::Status;
use comity_xdr::Malformed;

use crate::status::nfsstat4;

/// The reason why an operation failed, which ends the COMPOUND.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The result is this status alone.
    Status(Nfsstat4),
    /// The result has a body, which was already appended (LOCK, LOCKT, SETCLIENTID).
    Told(Nfsstat4),
    /// The COMPOUND is a retry. This is the kept reply, from its status on.
    Replay(Box<[u8]>),
}

impl From<Nfsstat4> for Stop {
    fn from(status: Nfsstat4) -> Self {
        Self::Status(status)
    }
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(nfsstat4(status))
    }
}

impl From<Refused> for Stop {
    fn from(refusal: Refused) -> Self {
        match refusal {
            Refused::State(Error::ShareDenied) => Self::Status(Nfsstat4::Locked),
            Refused::State(error) => refused(error),
            Refused::Rights(status) => status.into(),
        }
    }
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::Status(Nfsstat4::BadXdr)
    }
}

/// Returns the failure for an error of the engine.
pub(crate) fn refused(error: Error) -> Stop {
    Stop::Status(status_of(error))
}

const fn status_of(error: Error) -> Nfsstat4 {
    match error {
        Error::AdminRevoked => Nfsstat4::AdminRevoked,
        Error::BadHighSlot => Nfsstat4::BadHighSlot,
        Error::BadSeqid => Nfsstat4::BadSeqid,
        Error::BadSession => Nfsstat4::BadSession,
        Error::BadSlot => Nfsstat4::BadSlot,
        Error::BadLayout => Nfsstat4::BadLayout,
        Error::BadStateid => Nfsstat4::BadStateid,
        Error::ClientidBusy => Nfsstat4::ClientidBusy,
        Error::ClidInuse => Nfsstat4::ClidInUse,
        Error::CompleteAlready => Nfsstat4::CompleteAlready,
        Error::CbPathDown => Nfsstat4::CbPathDown,
        Error::ConnNotBound => Nfsstat4::ConnNotBoundToSession,
        Error::Delay => Nfsstat4::Delay,
        Error::DelegRevoked => Nfsstat4::DelegRevoked,
        Error::Expired => Nfsstat4::Expired,
        Error::Grace => Nfsstat4::Grace,
        Error::Inval => Nfsstat4::Inval,
        Error::LayoutTryLater => Nfsstat4::LayoutTryLater,
        Error::LeaseMoved => Nfsstat4::LeaseMoved,
        Error::LocksHeld => Nfsstat4::LocksHeld,
        Error::Noent => Nfsstat4::NoEnt,
        Error::NoGrace => Nfsstat4::NoGrace,
        Error::NotSame => Nfsstat4::NotSame,
        Error::OldStateid => Nfsstat4::OldStateid,
        Error::Openmode => Nfsstat4::OpenMode,
        Error::Perm => Nfsstat4::Perm,
        Error::RecallConflict => Nfsstat4::RecallConflict,
        Error::ReclaimBad => Nfsstat4::ReclaimBad,
        Error::ReclaimConflict => Nfsstat4::ReclaimConflict,
        Error::ReqTooBig => Nfsstat4::ReqTooBig,
        Error::Resource => Nfsstat4::Resource,
        Error::SeqFalseRetry => Nfsstat4::SeqFalseRetry,
        Error::SeqMisordered => Nfsstat4::SeqMisordered,
        Error::ShareDenied => Nfsstat4::ShareDenied,
        Error::Nospc => Nfsstat4::NoSpc,
        Error::StaleClientid => Nfsstat4::StaleClientid,
        Error::StaleStateid => Nfsstat4::StaleStateid,
        Error::TooManyOps => Nfsstat4::TooManyOps,
        Error::Toosmall => Nfsstat4::TooSmall,
        Error::WrongCred => Nfsstat4::WrongCred,
    }
}

/// Returns the result of TEST_STATEID for an error of the engine.
pub(crate) const fn verdict(error: Error) -> Nfsstat4 {
    status_of(error)
}
