use comity_proto::mount::Mountstat3;
use comity_vfs::Status;

/// Returns the status of MOUNT for a path that cannot be mounted (RFC 1813, 5.1.5).
pub(super) const fn mountstat3(status: Status) -> Mountstat3 {
    match status {
        Status::Perm => Mountstat3::Perm,
        Status::NoEnt | Status::Stale => Mountstat3::NoEnt,
        Status::Acces => Mountstat3::Acces,
        Status::NotDir | Status::SymLink => Mountstat3::NotDir,
        Status::Inval => Mountstat3::Inval,
        Status::NameTooLong => Mountstat3::NameTooLong,
        Status::NotSupp => Mountstat3::NotSupp,
        Status::Io | Status::NxIo | Status::NoDev => Mountstat3::Io,
        _ => Mountstat3::ServerFault,
    }
}
