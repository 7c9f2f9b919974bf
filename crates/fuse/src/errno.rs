//! Converts a status of the file system to an error number of the kernel.

use comity_vfs::Status;
use rustix::io::Errno;

/// The error number that a program gets for a status.
pub(crate) const fn errno(status: Status) -> Errno {
    match status {
        Status::Perm => Errno::PERM,
        Status::NoEnt => Errno::NOENT,
        Status::Io | Status::ServerFault => Errno::IO,
        Status::NxIo | Status::NoData => Errno::NXIO,
        Status::Acces => Errno::ACCESS,
        Status::Exist => Errno::EXIST,
        Status::XDev => Errno::XDEV,
        Status::NoDev => Errno::NODEV,
        Status::NotDir => Errno::NOTDIR,
        Status::IsDir => Errno::ISDIR,
        Status::Inval | Status::BadCookie | Status::BadOwner | Status::TooSmall => Errno::INVAL,
        Status::FBig => Errno::FBIG,
        Status::NoSpc => Errno::NOSPC,
        Status::RoFs => Errno::ROFS,
        Status::MLink => Errno::MLINK,
        Status::NameTooLong => Errno::NAMETOOLONG,
        Status::NotEmpty => Errno::NOTEMPTY,
        Status::DQuot => Errno::DQUOT,
        Status::Stale | Status::BadHandle => Errno::STALE,
        Status::NotSync | Status::Delay | Status::Locked => Errno::AGAIN,
        Status::NotSupp | Status::BadType => Errno::OPNOTSUPP,
        Status::SymLink => Errno::LOOP,
        Status::NoXattr => Errno::NODATA,
        Status::XattrTooBig => Errno::TOOBIG,
        Status::Interrupted => Errno::INTR,
    }
}
