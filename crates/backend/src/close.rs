use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::sys;

/// Closes a file. Dropping it does so too, but hides errors: on NFS and with quotas, earlier writes
/// may fail only now.
///
/// # Errors
/// The file system's error; the file is closed all the same.
pub fn close(file: OwnedFd) -> Result<(), Errno> {
    sys::close(file)
}
