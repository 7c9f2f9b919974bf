//! Lease breaks (`F_SETLEASE`): the kernel notifies one thread of programs that open a leased file,
//! by signals that only this thread receives. It also reads reports of changes without an open
//! ([`ChangeWatch`]).

use std::cell::Cell;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use comity_vfs::AsServer;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::fanotify_watch::{ChangeWatch, Told};
use crate::sys::{self, KernelHandle};

/// Time that a file is held before it is marked: most files that are released soon are never
/// marked. Changes made meanwhile are noticed when it is marked.
const MARK_DELAY: Duration = Duration::from_millis(20);

/// Pause after changes were reported, so that a program that changes files endlessly does not keep
/// the thread busy. The kernel queues events meanwhile, and merges equal ones.
pub(crate) const CHANGES_REST: Duration = Duration::from_millis(20);

/// Seconds that the kernel lets a program wait, if it does not report them.
const BREAK_SECONDS: u32 = 45;

/// The lease breaks and changes, passed from the thread that is notified to the file systems that
/// have the files. Without such a thread there are no leases.
#[derive(Debug, Default)]
pub struct LeaseWatch {
    /// The thread's id; 0 if there is none.
    thread: AtomicI32,
    /// The reports of changes, if the kernel makes any.
    changes: OnceLock<Arc<ChangeWatch>>,
    /// Wakes the thread for file systems that the kernel does not watch.
    alarm: OnceLock<OwnedFd>,
    wanted: Mutex<SignalledFiles>,
}

#[derive(Debug, Default)]
struct SignalledFiles {
    files: HashSet<RawFd>,
    /// Number of times that signals were lost.
    overflows: u64,
    changes: Changes,
}

/// The changes since the thread last waited.
#[derive(Debug, Default)]
struct Changes {
    /// The changed files, no more than are marked.
    files: HashSet<KernelHandle>,
    /// True if more files were changed than the kernel's queue holds.
    lost: bool,
    /// Number of times that changes were reported.
    turn: u64,
}

/// The changes that a file system has not processed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Changed {
    /// These files, and perhaps others of other file systems.
    These(Vec<KernelHandle>),
    /// Any files may have changed.
    All,
}

/// The role of the thread that the kernel notifies. It must not leave that thread.
#[derive(Debug)]
pub struct LeaseListener {
    watch: Arc<LeaseWatch>,
    signals: OwnedFd,
    /// The time at which files must be marked, if there are any.
    due: Cell<Option<Instant>>,
    /// The time at which changes were last read.
    heard: Cell<Option<Instant>>,
    stays: PhantomData<*const ()>,
}

impl LeaseWatch {
    /// Makes the calling thread the one that the kernel notifies.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn listen(self: &Arc<Self>, server: &AsServer) -> Result<LeaseListener, Errno> {
        let signals = sys::lease_signals()?;
        let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // A thread that listens anew uses the one that file systems know.
        let _ = self.alarm.set(alarm);
        match ChangeWatch::new(server) {
            Ok(changes) => drop(self.changes.set(Arc::new(changes))),
            Err(error) => tell_deaf(error),
        }
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread, Ordering::Release);
        let (watch, due, heard) = (Arc::clone(self), Cell::new(None), Cell::new(None));
        Ok(LeaseListener { watch, signals, due, heard, stays: PhantomData })
    }

    /// Returns the id of the thread that is notified, if there is one.
    pub(crate) fn thread(&self) -> Option<i32> {
        Some(self.thread.load(Ordering::Acquire)).filter(|thread| *thread != 0)
    }

    /// Wakes the thread, which then asks the file systems for wanted files. It may be called under
    /// any lock.
    pub(crate) fn wake(&self) {
        if let Some(alarm) = self.alarm.get() {
            // A full counter wakes the thread, too.
            let _ = rustix::io::write(alarm, &1u64.to_ne_bytes());
        }
    }

    /// Returns whether the thread was woken.
    fn is_woken(&self) -> bool {
        let read = |alarm: &OwnedFd| rustix::io::read(alarm, &mut [0; 8]).is_ok();
        self.alarm.get().is_some_and(read)
    }

    /// Returns the source of reports of changes, if the kernel makes any.
    pub(crate) fn changes(&self) -> Option<&Arc<ChangeWatch>> {
        self.changes.get()
    }

    /// Returns the changes since turn `heard`, and updates `heard`. Every file system gets all of
    /// them, because file systems may share files.
    pub(crate) fn changed(&self, heard: &mut u64) -> Changed {
        let changes = &self.wanted().changes;
        if std::mem::replace(heard, changes.turn) == changes.turn {
            return Changed::These(Vec::new());
        }
        if changes.lost {
            Changed::All
        } else {
            Changed::These(changes.files.iter().copied().collect())
        }
    }

    /// Takes the wanted files among those that are `known`, and returns the number of times that
    /// signals were lost.
    pub(crate) fn take(&self, known: impl Fn(RawFd) -> bool) -> (Vec<RawFd>, u64) {
        let mut wanted = self.wanted();
        let files = wanted.files.extract_if(|file| known(*file)).collect();
        (files, wanted.overflows)
    }

    /// Notes that more files are wanted than the kernel's queue holds.
    pub(crate) fn overflow(&self) {
        self.wanted().overflows += 1;
    }

    /// Notes that more files were changed than the kernel's queue holds.
    #[cfg(test)]
    pub(crate) fn lose(&self) {
        let changes = &mut self.wanted().changes;
        changes.lost = true;
        changes.turn += 1;
    }

    fn wanted(&self) -> MutexGuard<'_, SignalledFiles> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseListener {
    /// Waits until a program wants or changes a held file, which the file systems then report
    /// ([`comity_vfs::LocalLocks::poll_wanted`]), or until files are to be marked. Returns `false`
    /// once `end` is readable or its other side is closed. Events since the last call that no file
    /// system has claimed are dropped: those files have been given back.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&self, end: BorrowedFd<'_>) -> Result<bool, Errno> {
        self.watch.wanted().forget();
        loop {
            let ready = self.poll(end)?;
            if ready.end {
                return Ok(false);
            }
            let signalled = ready.signals && self.hear()?;
            let changed = ready.changes && self.hear_changes()?;
            if signalled || changed || self.watch.is_woken() || self.is_due(ready.bell) {
                self.due.set(None);
                return Ok(true);
            }
        }
    }

    fn poll(&self, end: BorrowedFd<'_>) -> Result<Ready, Errno> {
        let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let alarm = self.watch.alarm.get().map_or(end, |alarm| alarm.as_fd());
        let mut all = vec![on(end), on(self.signals.as_fd()), on(alarm)];
        let rest = self.rest();
        if let Some(changes) = self.watch.changes() {
            all.push(on(changes.bell()));
            all.extend(rest.is_none().then(|| on(changes.any())));
        }
        match poll(&mut all, self.patience(rest).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let is = |at| all.get(at).is_some_and(|fd: &PollFd<'_>| !fd.revents().is_empty());
        Ok(Ready { end: is(0), signals: is(1), bell: is(3), changes: is(4) })
    }

    /// Returns the rest of the pause during which changes are not read.
    fn rest(&self) -> Option<Duration> {
        CHANGES_REST.checked_sub(self.heard.get()?.elapsed()).filter(|rest| !rest.is_zero())
    }

    /// Returns the timeout of the wait: until the `rest` is over or files must be marked; `None`
    /// waits for an event.
    fn patience(&self, rest: Option<Duration>) -> Option<Timespec> {
        let due = self.due.get().map(|due| due.saturating_duration_since(Instant::now()));
        due.into_iter().chain(rest).min().and_then(|patience| patience.try_into().ok())
    }

    /// Returns whether files must be marked now: they are marked together, after a delay.
    fn is_due(&self, rung: bool) -> bool {
        if let Some(changes) = self.watch.changes().filter(|_| rung) {
            changes.answer();
            self.due.set(self.due.get().or_else(|| Instant::now().checked_add(MARK_DELAY)));
        }
        self.due.get().is_some_and(|due| due <= Instant::now())
    }

    /// Reads all reports of changes; returns whether there were any.
    fn hear_changes(&self) -> Result<bool, Errno> {
        let Some(watch) = self.watch.changes() else { return Ok(false) };
        let heard = watch.hear(|told| {
            let changes = &mut self.watch.wanted().changes;
            match told {
                Told::Changed(file) => drop(changes.files.insert(file)),
                Told::Lost => changes.lost = true,
            }
        })?;
        self.heard.set(Some(Instant::now()));
        self.watch.wanted().changes.turn += u64::from(heard);
        Ok(heard)
    }

    /// Reads all pending signals; returns whether there were any.
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

/// The descriptors that are readable.
struct Ready {
    end: bool,
    signals: bool,
    bell: bool,
    changes: bool,
}

impl SignalledFiles {
    fn forget(&mut self) {
        self.files.clear();
        self.changes.files.clear();
        self.changes.lost = false;
    }
}

fn tell_deaf(error: Errno) {
    tracing::warn!(%error, "the kernel does not tell when programs rename, remove or link files \
        that are delegated, or change their mode or owner: clients may show what was there before \
        until they ask. It can from Linux 5.13 on, or 5.1 with CAP_SYS_ADMIN");
}

impl Drop for LeaseListener {
    fn drop(&mut self) {
        self.watch.thread.store(0, Ordering::Release);
    }
}

/// Returns how long the kernel lets a program wait for a leased file; then it breaks the lease.
#[must_use]
pub fn lease_break_time(_: &AsServer) -> Duration {
    let said = std::fs::read_to_string("/proc/sys/fs/lease-break-time").unwrap_or_default();
    Duration::from_secs(said.trim().parse().unwrap_or(BREAK_SECONDS).into())
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::fanotify_watch::Mark;

    fn leased(path: &Path, thread: i32) -> File {
        std::fs::write(path, "").unwrap();
        let file = File::open(path).unwrap();
        sys::tell_thread(file.as_fd(), thread).unwrap();
        sys::set_lease(file.as_fd(), libc::F_RDLCK).unwrap();
        file
    }

    /// Marks a file that a program then changes.
    fn changed(path: &Path, watch: &Arc<ChangeWatch>) -> Mark {
        let file = File::create(path).unwrap();
        let mark = Mark::set(watch, &Arc::new(file)).unwrap();
        assert!(Command::new("chmod").arg("600").arg(path).status().unwrap().success());
        mark
    }

    #[test]
    fn a_watch_that_rests_from_changes_hears_all_else() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), Arc::<LeaseWatch>::default());
        let (end, ended) = UnixStream::pair().unwrap();
        let listener = watch.listen(&AsServer::here().unwrap()).unwrap();
        let changes = watch.changes().unwrap();
        let _mark = changed(&folder.path().join("changed"), changes);
        // The listener's last look at changes is set one hour ahead.
        listener.heard.set(Instant::now().checked_add(Duration::from_secs(3_600)));

        let path = folder.path().join("leased");
        let file = leased(&path, watch.thread().unwrap());
        let program = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&path);
        assert!(program.is_err());
        assert_eq!(listener.wait(ended.as_fd()), Ok(true));
        assert_eq!(watch.take(|_| true), (vec![file.as_raw_fd()], 0));
        changes.ring();
        assert_eq!(listener.wait(ended.as_fd()), Ok(true));
        assert_eq!(watch.take(|_| true), (vec![], 0));
        assert_eq!(watch.changed(&mut 0), Changed::These(vec![]));

        listener.heard.set(None);
        assert_eq!(listener.wait(ended.as_fd()), Ok(true));
        assert!(matches!(watch.changed(&mut 0), Changed::These(files) if files.len() == 1));
        listener.heard.set(Instant::now().checked_add(Duration::from_secs(3_600)));
        drop(end);
        assert_eq!(listener.wait(ended.as_fd()), Ok(false));
    }
}
