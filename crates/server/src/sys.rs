//! The only unsafe code of this crate.
#![expect(unsafe_code, reason = "taking possession of a descriptor known by number only")]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Takes ownership of a descriptor that this process was started with; `None` if it is not open.
pub(crate) fn inherited(descriptor: i32) -> Option<OwnedFd> {
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the number is not -1; it is used only for a system call that fails if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    fcntl_getfd(borrowed).ok()?;
    fcntl_setfd(borrowed, FdFlags::CLOEXEC).ok()?;
    // SAFETY: it is open, and by the protocol of sd_listen_fds(3) this process owns it.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
