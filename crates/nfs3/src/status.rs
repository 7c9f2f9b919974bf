use comity_proto::nfs3::Nfsstat3;
use comity_vfs::Status;

/// Returns the number of NFSv3 for the outcome of a file system's operation (RFC 1813, 2.6). A
/// status for which version 3 has no number gets the one after which a client does the right
/// thing.
#[must_use]
pub const fn nfsstat3(status: Status) -> Nfsstat3 {
    match status {
        Status::Perm | Status::BadOwner => Nfsstat3::Perm,
        Status::NoEnt => Nfsstat3::NoEnt,
        Status::Io => Nfsstat3::Io,
        Status::NxIo | Status::NoData => Nfsstat3::NxIo,
        Status::Acces => Nfsstat3::Acces,
        Status::Exist => Nfsstat3::Exist,
        Status::XDev => Nfsstat3::XDev,
        Status::NoDev => Nfsstat3::NoDev,
        Status::NotDir => Nfsstat3::NotDir,
        Status::IsDir => Nfsstat3::IsDir,
        Status::Inval | Status::SymLink | Status::XattrTooBig => Nfsstat3::Inval,
        Status::FBig => Nfsstat3::FBig,
        Status::NoSpc => Nfsstat3::NoSpc,
        Status::RoFs => Nfsstat3::RoFs,
        Status::MLink => Nfsstat3::MLink,
        Status::NameTooLong => Nfsstat3::NameTooLong,
        Status::NotEmpty => Nfsstat3::NotEmpty,
        Status::DQuot => Nfsstat3::DQuot,
        Status::Stale => Nfsstat3::Stale,
        Status::BadHandle => Nfsstat3::BadHandle,
        Status::NotSync => Nfsstat3::NotSync,
        Status::BadCookie => Nfsstat3::BadCookie,
        Status::NotSupp => Nfsstat3::NotSupp,
        Status::TooSmall => Nfsstat3::TooSmall,
        Status::ServerFault | Status::NoXattr => Nfsstat3::ServerFault,
        Status::BadType => Nfsstat3::BadType,
        // The conflict will end: the client waits and asks again.
        Status::Delay | Status::Locked | Status::Interrupted => Nfsstat3::Jukebox,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_and_a_lock_are_jukebox() {
        assert_eq!(nfsstat3(Status::Delay), Nfsstat3::Jukebox);
        assert_eq!(nfsstat3(Status::Locked), Nfsstat3::Jukebox);
        assert_eq!(nfsstat3(Status::BadHandle) as u32, 10_001);
    }
}
