//! Who is told that a program of this machine wants a file on which there is a lease
//! (`F_SETLEASE`): one thread, by signals that come to it alone and do nothing else.

use std::collections::HashSet;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::sys;

/// How long the kernel lets a program wait, where it does not say so.
const BREAK_SECONDS: u32 = 45;

/// What programs want, on its way from the thread that is told to the file systems that know which
/// files these are. Without such a thread there are no leases.
#[derive(Debug, Default)]
pub struct LeaseWatch {
    /// The thread's id; 0 if there is none.
    thread: AtomicI32,
    wanted: Mutex<Wanted>,
}

#[derive(Debug, Default)]
struct Wanted {
    files: HashSet<RawFd>,
    /// How often more was wanted than could be told.
    overflows: u64,
}

/// The thread that is told. It is not to leave it.
#[derive(Debug)]
pub struct LeaseListener {
    watch: Arc<LeaseWatch>,
    signals: OwnedFd,
    stays: PhantomData<*const ()>,
}

impl LeaseWatch {
    /// Has the calling thread be told from now on.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn listen(self: &Arc<Self>) -> Result<LeaseListener, Errno> {
        let signals = sys::lease_signals()?;
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread, Ordering::Release);
        Ok(LeaseListener { watch: Arc::clone(self), signals, stays: PhantomData })
    }

    /// The thread that is told, if there is one.
    pub(crate) fn thread(&self) -> Option<i32> {
        Some(self.thread.load(Ordering::Acquire)).filter(|thread| *thread != 0)
    }

    /// Takes out what is wanted of the files that are `known`, and tells how often something was
    /// wanted of which it is not known what.
    pub(crate) fn take(&self, known: impl Fn(RawFd) -> bool) -> (Vec<RawFd>, u64) {
        let mut wanted = self.wanted();
        let files = wanted.files.extract_if(|file| known(*file)).collect();
        (files, wanted.overflows)
    }

    /// More is wanted than could be told.
    pub(crate) fn overflow(&self) {
        self.wanted().overflows += 1;
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseListener {
    /// Waits until a program wants something, which file systems then tell
    /// ([`comity_vfs::Fs::poll_wanted`]); `false` once something can be read from `end`, or it was
    /// closed on the other side. What no file system has claimed since the last call is forgotten:
    /// it has been given back.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&self, end: BorrowedFd<'_>) -> Result<bool, Errno> {
        self.watch.wanted().files.clear();
        loop {
            let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
            let mut both = [on(self.signals.as_fd()), on(end)];
            match poll(&mut both, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            let [signals, end] = both.map(|fd| !fd.revents().is_empty());
            if end {
                return Ok(false);
            }
            if signals && self.hear()? {
                return Ok(true);
            }
        }
    }

    /// Takes all signals that have come; whether there were any.
    fn hear(&self) -> Result<bool, Errno> {
        let mut heard = false;
        loop {
            match sys::next_signal(self.signals.as_fd()) {
                Ok(Some(file)) => drop(self.watch.wanted().files.insert(file)),
                Ok(None) => self.watch.overflow(),
                Err(Errno::AGAIN) => return Ok(heard),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            }
            heard = true;
        }
    }
}

impl Drop for LeaseListener {
    fn drop(&mut self) {
        self.watch.thread.store(0, Ordering::Release);
    }
}

/// How long the kernel lets a program wait for a file on which there is a lease; then it goes on.
#[must_use]
pub fn lease_break_time() -> Duration {
    let said = std::fs::read_to_string("/proc/sys/fs/lease-break-time").unwrap_or_default();
    Duration::from_secs(said.trim().parse().unwrap_or(BREAK_SECONDS).into())
}
