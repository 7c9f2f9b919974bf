//! Names from the wire.

use comity_vfs::{Name, Result, Status};

/// The errors for `.` and for `..` if a name of an entry is expected.
pub(super) type OfDots = [Status; 2];

/// The errors of operations that make a name: the dots exist in every directory (RFC 1813, 3.3.9).
pub(super) const MADE: OfDots = [Status::Exist, Status::Exist];
/// The errors of REMOVE, as in Linux; RFC 1813, 3.3.12 leaves them open.
pub(super) const REMOVED: OfDots = [Status::Acces, Status::Acces];
/// The errors of RMDIR (RFC 1813, 3.3.13).
pub(super) const REMOVED_AS_DIR: OfDots = [Status::Inval, Status::Exist];
/// The errors of RENAME (RFC 1813, 3.3.14).
pub(super) const RENAMED: OfDots = [Status::Inval, Status::Inval];

/// Checks a name to be made, changed or removed.
pub(super) fn entry_name(name: &[u8], [one, two]: OfDots) -> Result<Name<'_>> {
    match name {
        b"." => Err(one),
        b".." => Err(two),
        _ => plain_name(name),
    }
}

/// Checks a name. A malformed one gives ACCES (RFC 1813, 3.2).
pub(super) fn plain_name(name: &[u8]) -> Result<Name<'_>> {
    Name::new(name).map_err(|status| if status == Status::Inval { Status::Acces } else { status })
}
