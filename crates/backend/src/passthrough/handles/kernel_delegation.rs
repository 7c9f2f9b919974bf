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

/// Takes the delegation of a directory for a moment, to see whether the kernel grants it.
///
/// # Errors
/// The kernel's error: `Errno::AGAIN` while a program uses the directory.
pub(crate) fn try_delegation(directory: &File) -> sys::Result<()> {
    deaf_to_breaks(directory, || {
        sys::set_delegation(directory.as_fd(), libc::F_RDLCK)?;
        sys::set_delegation(directory.as_fd(), libc::F_UNLCK)
    })
}

/// Does `work` in a thread that alone gets the signals about leases of this open file description.
/// They end with the thread. Otherwise SIGIO would end the process.
fn deaf_to_breaks(file: &File, work: impl FnOnce() -> sys::Result<()> + Send) -> sys::Result<()> {
    let work = || {
        let _signals = sys::lease_signals()?;
        sys::tell_thread(file.as_fd(), rustix::thread::gettid().as_raw_nonzero().get())?;
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work);
        // Without a thread it is not known what the kernel can do.
        let thread = thread.map_err(|_| Errno::AGAIN)?;
        thread.join().unwrap_or(Err(Errno::IO))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    #[test]
    fn a_program_that_breaks_a_lease_taken_as_a_trial_does_not_end_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        let file = File::open(&path).unwrap();
        let tried = deaf_to_breaks(&file, || {
            sys::set_lease(file.as_fd(), libc::F_RDLCK)?;
            let opened = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&path);
            assert_eq!(opened.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
            assert_ne!(sys::lease(file.as_fd()), Ok(libc::F_RDLCK), "the lease is broken");
            sys::set_lease(file.as_fd(), libc::F_UNLCK)
        });
        assert_eq!(tried, Ok(()));
    }
}
