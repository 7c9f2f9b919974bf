use comity_proto::nfs4::Nfsstat4;
use comity_vfs::Status;

use crate::compound::OpFailure;
use crate::engine::Unanswered;
use crate::machine::CallFailure;
use crate::rpc::RpcRefusal;

/// Converts an error of NFSv4 (RFC 8881, 15.1).
pub(super) const fn status(status: Nfsstat4) -> Status {
    match status {
        Nfsstat4::Perm => Status::Perm,
        Nfsstat4::NoEnt => Status::NoEnt,
        Nfsstat4::NxIo => Status::NxIo,
        Nfsstat4::Access | Nfsstat4::WrongSec => Status::Acces,
        Nfsstat4::Exist => Status::Exist,
        Nfsstat4::XDev | Nfsstat4::WrongLfs => Status::XDev,
        Nfsstat4::NotDir => Status::NotDir,
        Nfsstat4::IsDir => Status::IsDir,
        Nfsstat4::Inval
        | Nfsstat4::BadChar
        | Nfsstat4::BadName
        | Nfsstat4::BadRange
        | Nfsstat4::UnionNotSupp
        | Nfsstat4::WrongType => Status::Inval,
        Nfsstat4::FBig => Status::FBig,
        Nfsstat4::NoSpc => Status::NoSpc,
        Nfsstat4::RoFs => Status::RoFs,
        Nfsstat4::MLink => Status::MLink,
        Nfsstat4::NameTooLong => Status::NameTooLong,
        Nfsstat4::NotEmpty | Nfsstat4::FileOpen => Status::NotEmpty,
        Nfsstat4::DQuot => Status::DQuot,
        Nfsstat4::Stale | Nfsstat4::FhExpired => Status::Stale,
        Nfsstat4::BadHandle => Status::BadHandle,
        Nfsstat4::BadCookie | Nfsstat4::NotSame => Status::BadCookie,
        Nfsstat4::NotSupp | Nfsstat4::AttrNotSupp | Nfsstat4::LockNotSupp => Status::NotSupp,
        Nfsstat4::TooSmall => Status::TooSmall,
        Nfsstat4::BadType => Status::BadType,
        Nfsstat4::Delay | Nfsstat4::Grace => Status::Delay,
        Nfsstat4::Symlink => Status::SymLink,
        Nfsstat4::Locked | Nfsstat4::ShareDenied | Nfsstat4::Denied => Status::Locked,
        Nfsstat4::NoXattr => Status::NoXattr,
        Nfsstat4::Xattr2Big => Status::XattrTooBig,
        Nfsstat4::BadOwner => Status::BadOwner,
        Nfsstat4::ServerFault => Status::ServerFault,
        // The other errors concern state and sessions, which callers of the file system cannot act
        // on.
        _ => Status::Io,
    }
}

impl From<OpFailure> for Status {
    fn from(failure: OpFailure) -> Self {
        match failure {
            OpFailure::Status(found) => status(found),
            OpFailure::Malformed(reason) => {
                tracing::warn!(%reason, "a result of the server is malformed");
                Self::Io
            }
        }
    }
}

impl From<CallFailure> for Status {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Refused(RpcRefusal::Auth(_)) => Self::Acces,
            CallFailure::Status(found) => status(found),
            CallFailure::TimedOut
            | CallFailure::Refused(_)
            | CallFailure::StateLost
            | CallFailure::Ended => Self::Io,
        }
    }
}

impl From<Unanswered> for Status {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Interrupted => Self::Interrupted,
            Unanswered::NoRoom => CallFailure::TimedOut.into(),
        }
    }
}
