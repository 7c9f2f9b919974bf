use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::{LeaseWatch, sys};

/// Number of attempts to take a delegation. The kernel refuses it while any program looks into the
/// directory.
const ATTEMPTS: usize = 16;

/// The kernel's delegation of a directory (`F_SETDELEG`): programs that change the directory wait
/// until it is released.
#[derive(Debug)]
pub(crate) struct KernelDelegation {
    pub(crate) directory: Arc<File>,
    /// The thread that is notified of programs that wait.
    pub(crate) thread: i32,
    pub(crate) watch: Arc<LeaseWatch>,
}

impl KernelDelegation {
    /// Takes the delegation.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn take(&self) -> sys::Result<()> {
        sys::tell_thread(self.directory.as_fd(), self.thread)?;
        let mut taken = sys::set_delegation(self.directory.as_fd(), libc::F_RDLCK);
        for _ in 1..ATTEMPTS {
            if taken != Err(rustix::io::Errno::AGAIN) {
                break;
            }
            std::thread::yield_now();
            taken = sys::set_delegation(self.directory.as_fd(), libc::F_RDLCK);
        }
        taken
    }

    /// Takes the delegation after a change by this server. If that fails, the directory is reported
    /// as wanted.
    pub(crate) fn take_again(&self) {
        if self.take().is_err() {
            self.watch.overflow();
            self.watch.wake();
        }
    }

    /// Releases the delegation.
    pub(crate) fn release(&self) {
        // The kernel has removed the delegation if a program waited for too long.
        let _ = sys::set_delegation(self.directory.as_fd(), libc::F_UNLCK);
    }

    /// Returns whether no program waits for the directory, and the delegation was not broken.
    pub(crate) fn is_whole(&self) -> bool {
        sys::delegation(self.directory.as_fd()) == Ok(libc::F_RDLCK)
    }
}
