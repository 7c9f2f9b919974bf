//! Byte-range locks of an open file description (`F_OFD_SETLK`): threads of one program can hold
//! them against each other, which the traditional locks of a process cannot.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::sys;

/// The kind of a lock: the accesses that it prevents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Writes by others are prevented.
    Shared,
    /// All accesses by others are prevented.
    Exclusive,
    /// The lock is released.
    Unlock,
}

/// Takes or releases a lock on `length` bytes from `offset` on; length 0 reaches to the end.
///
/// # Errors
/// AGAIN if another description has a conflicting lock and `wait` is not set; INTR if a signal came
/// while waiting; OVERFLOW for offsets that a file cannot have; other errors of the file system.
pub fn lock(
    file: BorrowedFd<'_>,
    kind: Kind,
    (offset, length): (u64, u64),
    wait: bool,
) -> Result<(), Errno> {
    let signed = |number: u64| i64::try_from(number).map_err(|_| Errno::OVERFLOW);
    sys::lock_range(file, number(kind), (signed(offset)?, signed(length)?), wait)
}

/// Returns whether a lock could be taken.
///
/// # Errors
/// As [`lock`].
pub(crate) fn is_free(
    file: BorrowedFd<'_>,
    kind: Kind,
    (offset, length): (u64, u64),
) -> Result<bool, Errno> {
    let signed = |number: u64| i64::try_from(number).map_err(|_| Errno::OVERFLOW);
    sys::is_range_free(file, number(kind), (signed(offset)?, signed(length)?))
}

const fn number(kind: Kind) -> libc::c_int {
    match kind {
        Kind::Shared => libc::F_RDLCK,
        Kind::Exclusive => libc::F_WRLCK,
        Kind::Unlock => libc::F_UNLCK,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn open_files_of_one_process_hold_locks_against_each_other() {
        let first = tempfile::NamedTempFile::new().unwrap();
        let second = first.reopen().unwrap();
        let (first, second) = (first.as_file().as_fd(), second.as_fd());
        lock(first, Kind::Exclusive, (0, 100), false).unwrap();
        assert_eq!(lock(second, Kind::Shared, (99, 1), false), Err(Errno::AGAIN));
        lock(second, Kind::Exclusive, (100, 0), false).unwrap();
        lock(first, Kind::Unlock, (50, 50), false).unwrap();
        lock(second, Kind::Shared, (99, 1), false).unwrap();
        assert_eq!(lock(first, Kind::Shared, (u64::MAX, 1), false), Err(Errno::OVERFLOW));
    }
}
