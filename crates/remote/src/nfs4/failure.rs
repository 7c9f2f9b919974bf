use std::io::{Error, ErrorKind};

use comity_proto::nfs4::Nfsstat4;
use comity_xdr::Malformed;
use rustix::io::Errno;

/// Makes an error of a status. If the client's state has ended, the message gives the likely cause.
pub(super) fn refused(status: Nfsstat4) -> Error {
    use Nfsstat4::{
        BadSession, BadStateid, DeadSession, Expired, MinorVersMismatch, StaleClientid,
    };
    match status {
        MinorVersMismatch => Error::other("the server does not speak NFS 4.1"),
        BadSession | DeadSession | StaleClientid | Expired | BadStateid => Error::other(format!(
            "the server says {status:?}: it restarted, or the lease expired between two requests"
        )),
        status => numbered(status),
    }
}

/// Makes an error of a status. NFS4ERR numbers up to 70 equal those of Unix; where Linux's differ,
/// they are translated.
pub(super) fn numbered(status: Nfsstat4) -> Error {
    let errno = match status {
        Nfsstat4::NameTooLong => Errno::NAMETOOLONG,
        Nfsstat4::NotEmpty => Errno::NOTEMPTY,
        Nfsstat4::DQuot => Errno::DQUOT,
        Nfsstat4::Stale | Nfsstat4::BadHandle | Nfsstat4::FhExpired => Errno::STALE,
        Nfsstat4::NotSupp | Nfsstat4::AttrNotSupp | Nfsstat4::LockNotSupp => Errno::OPNOTSUPP,
        Nfsstat4::Denied | Nfsstat4::Locked => Errno::AGAIN,
        Nfsstat4::Deadlock => Errno::DEADLK,
        Nfsstat4::Symlink => Errno::LOOP,
        status if (status as u32) < 63 => Errno::from_raw_os_error(status as i32),
        status => return Error::other(format!("the server says {status:?}")),
    };
    errno.into()
}

/// Returns whether the server asks for a retry.
pub(super) const fn is_later(status: Nfsstat4) -> bool {
    matches!(status, Nfsstat4::Delay | Nfsstat4::Grace)
}

pub(super) fn malformed(error: Malformed) -> Error {
    Error::new(ErrorKind::InvalidData, format!("a reply that is malformed: {error}"))
}
