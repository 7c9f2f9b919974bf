use comity_vfs::{Cred, Gid, Uid};

/// The user as which the metadata server works, on itself and on data servers.
pub(crate) fn root() -> Cred<comity_vfs::Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}
