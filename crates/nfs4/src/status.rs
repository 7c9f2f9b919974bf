use comity_proto::nfs4::Nfsstat4;
use comity_vfs::Status;

/// Returns the error of NFSv4 for an error of the file system (RFC 8881, 15.1).
#[must_use]
pub const fn nfsstat4(status: Status) -> Nfsstat4 {
    match status {
        Status::Perm => Nfsstat4::Perm,
        Status::NoEnt => Nfsstat4::NoEnt,
        Status::Io => Nfsstat4::Io,
        Status::NxIo | Status::NoDev | Status::NoData => Nfsstat4::NxIo,
        Status::Acces => Nfsstat4::Access,
        Status::Exist => Nfsstat4::Exist,
        Status::XDev => Nfsstat4::XDev,
        Status::NotDir => Nfsstat4::NotDir,
        Status::IsDir => Nfsstat4::IsDir,
        // Only NFSv3 has a guard in SETATTR.
        Status::Inval | Status::NotSync => Nfsstat4::Inval,
        Status::FBig => Nfsstat4::FBig,
        Status::NoSpc => Nfsstat4::NoSpc,
        Status::RoFs => Nfsstat4::RoFs,
        Status::MLink => Nfsstat4::MLink,
        Status::NameTooLong => Nfsstat4::NameTooLong,
        Status::NotEmpty => Nfsstat4::NotEmpty,
        Status::DQuot => Nfsstat4::DQuot,
        Status::Stale => Nfsstat4::Stale,
        Status::BadHandle => Nfsstat4::BadHandle,
        Status::BadCookie => Nfsstat4::BadCookie,
        Status::NotSupp => Nfsstat4::NotSupp,
        Status::TooSmall => Nfsstat4::TooSmall,
        Status::ServerFault => Nfsstat4::ServerFault,
        Status::BadType => Nfsstat4::BadType,
        Status::Delay | Status::Interrupted => Nfsstat4::Delay,
        Status::SymLink => Nfsstat4::Symlink,
        Status::Locked => Nfsstat4::Locked,
        Status::NoXattr => Nfsstat4::NoXattr,
        Status::XattrTooBig => Nfsstat4::Xattr2Big,
        Status::BadOwner => Nfsstat4::BadOwner,
    }
}
