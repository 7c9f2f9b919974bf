use std::ffi::CStr;

use comity_vfs::{Result, Status};

use super::ffi::Vino;
use super::handle::mixed;

/// The name under which each directory shows its snapshots. Listings leave it out.
pub(super) const NAME: &CStr = c".snap";

/// The number of the snapshot in which current objects are seen (`CEPH_NOSNAP`).
pub(super) const NO_SNAPSHOT: u64 = u64::MAX - 1;

/// The number of a directory of snapshots (`CEPH_SNAPDIR`). If libcephfs finds it by its number, it
/// does not know what is above it.
pub(super) const DIRECTORY: u64 = u64::MAX;

/// Refuses changes of snapshots.
///
/// # Errors
/// [`Status::RoFs`] if the object is in a snapshot, or is a directory of snapshots.
pub(super) fn check_current(vino: Vino) -> Result<()> {
    if vino.snapid == NO_SNAPSHOT { Ok(()) } else { Err(Status::RoFs) }
}

/// Refuses the name of the snapshots for a new object: Ceph would take it, but no client could
/// reach the object, nor the snapshots.
///
/// # Errors
/// [`Status::Exist`] if it is that name.
pub(super) fn check_new_name(name: &CStr) -> Result<()> {
    if name == NAME { Err(Status::Exist) } else { Ok(()) }
}

/// Refuses to remove or rename the snapshots.
///
/// # Errors
/// [`Status::Acces`] if it is their name.
pub(super) fn check_old_name(name: &CStr) -> Result<()> {
    if name == NAME { Err(Status::Acces) } else { Ok(()) }
}

/// Returns whether an object can be in a directory. For a directory in a snapshot of which it does
/// not know the path, libcephfs answers with the current objects.
pub(super) fn may_contain(dir: Vino, object: Vino) -> bool {
    match dir.snapid {
        NO_SNAPSHOT => true,
        DIRECTORY => is_of_snapshot(object),
        snapid => object.snapid == snapid,
    }
}

/// Returns whether an object can be above a directory. For a directory in a snapshot of which it
/// does not know the path, libcephfs answers with a current one, or with the directory itself.
pub(super) fn may_be_above(dir: Vino, object: Vino) -> bool {
    let is_above = |snapid| snapid == DIRECTORY || (snapid == dir.snapid && object != dir);
    !is_of_snapshot(dir) || is_above(object.snapid)
}

/// Returns whether this is an object in a snapshot.
pub(super) const fn is_of_snapshot(vino: Vino) -> bool {
    vino.snapid != NO_SNAPSHOT && vino.snapid != DIRECTORY
}

/// Returns the number by which clients tell an object from others: in each snapshot an object has
/// another one, so that a client does not take both for the same.
pub(super) fn fileid(vino: Vino) -> u64 {
    match vino.snapid {
        NO_SNAPSHOT => vino.ino,
        snapid => mixed(&[vino.ino, snapid]),
    }
}
