use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use comity_vfs::{Result, Status};
use rustix::io::Errno;

use crate::passthrough::access::thread_credentials::Identity;
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
    /// The identity under which the kernel never refuses to set the delegation.
    pub(crate) identity: Identity,
}

impl KernelDelegation {
    /// Takes the delegation.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn take(&self) -> sys::Result<()> {
        sys::tell_thread(self.directory.as_fd(), self.thread)?;
        let mut taken = self.set(libc::F_RDLCK);
        for _ in 1..ATTEMPTS {
            if taken != Err(Errno::AGAIN) {
                break;
            }
            std::thread::yield_now();
            taken = self.set(libc::F_RDLCK);
        }
        taken
    }

    /// Reports the directory as wanted if the delegation is not whole.
    pub(crate) fn report_if_broken(&self) {
        if !self.is_whole() {
            self.watch.overflow();
            self.watch.wake();
        }
    }

    /// Releases the delegation.
    ///
    /// # Errors
    /// [`Status::Delay`] if the kernel refuses that: a change by this server would wait for the
    /// delegation.
    pub(crate) fn release(&self) -> Result<()> {
        match self.set(libc::F_UNLCK) {
            // The kernel has removed the delegation if a program waited for too long.
            Ok(()) | Err(Errno::AGAIN) => Ok(()),
            Err(errno) => {
                tracing::debug!(%errno, "a directory's delegation cannot be released");
                Err(Status::Delay)
            }
        }
    }

    /// Returns whether no program waits for the directory, and the delegation was not broken.
    pub(crate) fn is_whole(&self) -> bool {
        sys::delegation(self.directory.as_fd()) == Ok(libc::F_RDLCK)
    }

    /// Sets the delegation. In a user namespace the kernel refuses that to a caller who does not
    /// own the directory; then it is set with the server's own rights.
    fn set(&self, kind: libc::c_int) -> sys::Result<()> {
        let set = || sys::set_delegation(self.directory.as_fd(), kind);
        match set() {
            Err(Errno::ACCESS) => self.identity.as_server(set).unwrap_or(Err(Errno::ACCESS)),
            done => done,
        }
    }
}
