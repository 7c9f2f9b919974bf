//! Files that are held for clients against other programs of this machine, by leases of the kernel
//! (`F_SETLEASE`). Directories are held in other ways (`directory_hold.rs`).
//!
//! Any conflicting open breaks a lease, even an open by the server. So a shared lease needs that
//! the server has no descriptor for writing, and an exclusive one needs that all reads and writes
//! use one open file description.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{DirectoryHold, FileHold, Handle, LocalUse, Result, Status};
use rustix::fs::OFlags;

use super::fanotify_marks::Marked;
use crate::passthrough::Passthrough;
use crate::passthrough::access::thread_credentials::Identity;
use crate::passthrough::handles::cache::HandleHasher;
use crate::passthrough::handles::node::{Node, Use};
use crate::{LeaseWatch, sys};

/// Held files.
#[derive(Debug)]
pub(crate) struct Leases {
    /// The watch that is notified of programs that open leased files.
    pub(crate) watch: Option<Arc<LeaseWatch>>,
    /// True if files of all users can be held, or no files are to be held.
    pub(crate) hold_all: bool,
    /// The identity under which marks are set and removed.
    pub(crate) identity: Identity,
    held: Mutex<LeasedFiles>,
}

#[derive(Debug, Default)]
pub(crate) struct LeasedFiles {
    pub(crate) files: HashMap<Handle, Lease, BuildHasherDefault<HandleHasher>>,
    /// The file of each descriptor with a lease.
    known: HashMap<RawFd, Handle>,
    /// Files that fanotify does not watch yet.
    pub(crate) unmarked: HashSet<Handle, BuildHasherDefault<HandleHasher>>,
    /// Files that programs wait for or have changed, not yet reported.
    pub(crate) wanted: Vec<(Handle, LocalUse)>,
    /// The number of times that signals were lost, so that all files had to be checked.
    overflows: u64,
    /// The last turn in which changes were read.
    pub(crate) turn: u64,
}

/// A held file. Its node stays in use.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) node: Arc<Node>,
    pub(crate) file: Arc<File>,
    pub(crate) hold: FileHold,
    pub(crate) marked: Marked,
    /// True if it was reported that a program waits for the file.
    pub(crate) told: bool,
}

impl Leases {
    /// Makes an empty table; without a watch it stays empty.
    pub(crate) fn new(watch: Option<Arc<LeaseWatch>>, identity: Identity) -> Self {
        let hold_all = watch.is_none() || Identity::may_lease_all();
        let watch = watch.filter(|_| identity.may_lease());
        Self { watch, hold_all, identity, held: Mutex::default() }
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, LeasedFiles> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a file has a shared lease, beside which the server itself must open it for
    /// reading only.
    pub(crate) fn is_shared(&self, file: &Handle) -> bool {
        self.held().files.get(file).is_some_and(|lease| lease.hold == FileHold::Shared)
    }

    /// Returns whether the lease of a file is unbroken, if the file is held with this `hold`. A
    /// directory keeps its first hold.
    pub(crate) fn stands(&self, file: &Handle, hold: FileHold) -> Option<bool> {
        let mut held = self.held();
        let lease = held.files.get_mut(file)?;
        if lease.hold == hold {
            let is_whole = lease.is_whole();
            // The next program that waits is reported again.
            lease.told &= !is_whole;
            return Some(is_whole);
        }
        matches!(hold, FileHold::Directory(_)).then_some(false)
    }

    /// Adds a held file.
    pub(crate) fn add(&self, handle: &Handle, lease: Lease) {
        let mut held = self.held();
        held.known.insert(lease.file.as_raw_fd(), *handle);
        held.files.insert(*handle, lease);
    }

    /// Removes a file, which its lease still holds.
    pub(crate) fn remove(&self, file: &Handle) -> Option<Lease> {
        let mut held = self.held();
        let lease = held.files.remove(file)?;
        held.known.remove(&lease.file.as_raw_fd());
        held.unmarked.remove(file);
        held.wanted.retain(|(wanted, _)| wanted != file);
        lease.node.unmarked.store(false, Ordering::Relaxed);
        Some(lease)
    }
}

impl Passthrough {
    /// See [`comity_vfs::LocalLocks::hold_file`]. There is only one call for a file at a time.
    pub(crate) fn hold_file(&self, file: &Handle, hold: FileHold) -> Result<bool> {
        let thread = self.leases.watch.as_ref().and_then(|watch| watch.thread());
        let Some(thread) = thread.filter(|_| hold != FileHold::Free) else {
            self.hold_no_more(file);
            return Ok(hold == FileHold::Free);
        };
        if let Some(stands) = self.leases.stands(file, hold) {
            return Ok(stands);
        }
        self.hold_no_more(file);
        if !self.nodes.ledger().descriptors.pin() {
            return Err(Status::Delay);
        }
        let held = match hold {
            FileHold::Directory(hold) => self.begin_directory(file, hold, thread),
            _ => self.begin_lease(file, hold, thread),
        };
        if held != Ok(true) {
            self.nodes.ledger().descriptors.unpin();
        }
        held
    }

    /// See [`comity_vfs::LocalLocks::poll_wanted`].
    pub(crate) fn poll_wanted(&self) -> Option<(Handle, LocalUse)> {
        let watch = self.leases.watch.as_ref()?;
        self.leases.mark_all();
        // Take the lock first: a lease break may arrive while the lease is being taken.
        let mut held = self.leases.held();
        held.hear(watch);
        self.hear_changes(&mut held);
        held.wanted.pop()
    }

    fn begin_lease(&self, handle: &Handle, hold: FileHold, thread: i32) -> Result<bool> {
        let node = self.regular(handle)?;
        let Some(file) = self.sole_descriptor(&node, hold)? else { return Ok(false) };
        let mut held = self.leases.held();
        let mut lease = Lease { node, file, hold, marked: Marked::No, told: false };
        if let Err(errno) = lease.begin(thread) {
            drop(held);
            tracing::debug!(%errno, "a file cannot be leased, and so it is not delegated");
            self.after(&lease);
            return Ok(false);
        }
        lease.marked = self.leases.begin_mark(&lease.node, &lease.file);
        held.known.insert(lease.file.as_raw_fd(), *handle);
        held.files.insert(*handle, lease);
        self.leases.mark_soon(&mut held, handle);
        Ok(true)
    }

    /// Returns the only descriptor that may be open while the file is held in this way; `None` if
    /// another must be open.
    fn sole_descriptor(&self, node: &Node, hold: FileHold) -> Result<Option<Arc<File>>> {
        if hold == FileHold::Shared {
            let read = || self.data(node, Use::Read);
            return node.stop_writing().then(read).transpose();
        }
        let Ok(file) = self.data(node, Use::Write) else { return Ok(None) };
        Ok(node.use_only(&file).then_some(file))
    }

    fn hold_no_more(&self, file: &Handle) {
        let Some(lease) = self.leases.remove(file) else { return };
        lease.end();
        self.after(&lease);
        self.nodes.ledger().descriptors.unpin();
    }

    /// Allows two descriptors for data again, after the lease has ended.
    fn after(&self, lease: &Lease) {
        if lease.hold != FileHold::Exclusive {
            return;
        }
        if let Some(reading) = lease.node.use_both() {
            let opened = self.open_data(&lease.node, OFlags::RDONLY);
            // On failure, reads continue with the other description.
            let _ = opened.map(|file| sys::replace_descriptor(reading, file.as_fd()));
        }
        lease.node.end_writing();
    }
}

impl LeasedFiles {
    /// Reads which files are wanted by programs.
    fn hear(&mut self, watch: &LeaseWatch) {
        let (files, overflows) = watch.take(|file| self.known.contains_key(&file));
        let heard: Vec<Handle> = if overflows == self.overflows {
            files.iter().filter_map(|file| self.known.get(file)).copied().collect()
        } else {
            self.files.keys().copied().collect()
        };
        self.overflows = overflows;
        for handle in heard {
            // The descriptor may have been that of another file.
            let lease = self.files.get_mut(&handle);
            if let Some(lease) = lease.filter(|lease| !lease.told && !lease.is_whole()) {
                lease.told = true;
                self.wanted.push((handle, LocalUse::Open));
            }
        }
    }
}

impl Lease {
    fn begin(&self, thread: i32) -> sys::Result<()> {
        sys::tell_thread(self.file.as_fd(), thread)?;
        sys::set_lease(self.file.as_fd(), self.kind())
    }

    /// Gives the file back to programs.
    pub(crate) fn end(&self) {
        match self.hold {
            FileHold::Directory(DirectoryHold::Late) => {}
            FileHold::Directory(DirectoryHold::Wait) => self.node.undelegate(),
            // The kernel has removed the lease if a program waited for too long.
            _ => drop(sys::set_lease(self.file.as_fd(), libc::F_UNLCK)),
        }
    }

    /// Returns whether no program waits for the file, and the lease was not broken.
    fn is_whole(&self) -> bool {
        match self.hold {
            FileHold::Directory(DirectoryHold::Late) => true,
            FileHold::Directory(DirectoryHold::Wait) => self.node.is_delegated(),
            _ => sys::lease(self.file.as_fd()) == Ok(self.kind()),
        }
    }

    fn kind(&self) -> libc::c_int {
        if self.hold == FileHold::Shared { libc::F_RDLCK } else { libc::F_WRLCK }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use comity_vfs::{Fs, LocalLocks, Name, SetAttr};

    use super::super::test_support::{
        MOMENT, PATIENCE, WatchedFile, cred, emptying, reading, writing,
    };
    use super::*;
    use crate::passthrough::PassthroughOptions;

    #[test]
    fn a_program_that_writes_a_file_leased_for_readers_is_reported_and_waits() {
        for program in [writing(), emptying()] {
            let site = WatchedFile::new();
            assert_eq!(site.hold(FileHold::Shared), Ok(true));
            site.opens(&reading()).recv_timeout(PATIENCE).unwrap();
            let opened = site.opens(&program);
            assert_eq!(site.wanted(), Some((site.file, LocalUse::Open)));
            assert_eq!(LocalLocks::poll_wanted(&site.fs), None, "it was reported already");
            assert!(opened.recv_timeout(MOMENT).is_err());
            assert_eq!(site.hold(FileHold::Shared), Ok(false), "a program waits for the file");
            assert_eq!(site.read(), b"some bytes");
            assert_eq!(site.hold(FileHold::Free), Ok(true));
            opened.recv_timeout(PATIENCE).unwrap();
        }
    }

    #[test]
    fn a_reader_of_a_file_leased_against_all_waits_and_sees_the_written_data() {
        let site = WatchedFile::new();
        assert_eq!(site.hold(FileHold::Exclusive), Ok(true));
        let opened = site.opens(&reading());
        assert_eq!(site.wanted(), Some((site.file, LocalUse::Open)));
        assert!(opened.recv_timeout(MOMENT).is_err());
        site.fs.write(&cred(), &site.file, 0, b"more").unwrap();
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        let program = opened.recv_timeout(PATIENCE).unwrap();
        assert_eq!(std::io::read_to_string(program).unwrap(), "more bytes");
    }

    #[test]
    fn a_file_that_a_program_has_open_cannot_be_leased() {
        let site = WatchedFile::new();
        let program = site.opens(&reading()).recv().unwrap();
        assert_eq!(site.hold(FileHold::Exclusive), Ok(false));
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        drop(program);
        let program = site.opens(&writing()).recv().unwrap();
        assert_eq!(site.hold(FileHold::Shared), Ok(false));
        assert_eq!(site.hold(FileHold::Exclusive), Ok(false));
        drop(program);
        // Processes that other tests start have a copy of the descriptor until they run theirs.
        let until = Instant::now() + PATIENCE;
        while site.hold(FileHold::Exclusive) != Ok(true) {
            assert!(Instant::now() < until, "the file is not open any more");
            std::thread::sleep(MOMENT);
        }
        assert_eq!(site.hold(FileHold::Shared), Ok(true), "one hold replaces the other");
    }

    #[test]
    fn opens_by_the_server_itself_break_no_lease() {
        let site = WatchedFile::new();
        let reads = site.read();
        assert_eq!(site.hold(FileHold::Exclusive), Ok(true));
        site.fs.write(&cred(), &site.file, 0, b"SOME").unwrap();
        assert_ne!(site.read(), reads);
        site.fs.commit(&site.file).unwrap();
        let shorter = SetAttr { size: Some(4), ..SetAttr::default() };
        site.fs.setattr(&cred(), &site.file, &shorter, None).unwrap();
        assert_eq!(site.read(), b"SOME");
        site.fs.commit(&site.file).unwrap();
        site.fs.write(&cred(), &site.file, 4, b"!").unwrap();
        let ends = |lock| LocalLocks::hold_range(&site.fs, &site.file, (0, u64::MAX), lock);
        assert_eq!(ends(comity_vfs::RangeLock::Exclusive), Ok(true));
        assert_eq!(ends(comity_vfs::RangeLock::Free), Ok(true));
        assert_eq!(site.hold(FileHold::Exclusive), Ok(true), "it is held as before");
        assert_eq!(site.hold(FileHold::Shared), Ok(false), "the data are not stable yet");
        site.fs.commit(&site.file).unwrap();
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        assert_eq!(site.read(), b"SOME!");
        site.fs.commit(&site.file).unwrap();
        assert_eq!(ends(comity_vfs::RangeLock::Shared), Ok(true));
        assert_eq!(ends(comity_vfs::RangeLock::Free), Ok(true));
        assert_eq!(site.hold(FileHold::Shared), Ok(true), "it is held as before");
        assert!(site.is_quiet(), "a program wanted the file");
    }

    #[test]
    fn a_file_that_was_leased_against_all_can_be_executed_afterwards() {
        let site = WatchedFile::new();
        site.read();
        let before = site.fs.nodes.ledger().descriptors.open();
        assert_eq!(site.hold(FileHold::Exclusive), Ok(true));
        site.fs.write(&cred(), &site.file, 0, b"more").unwrap();
        site.fs.commit(&site.file).unwrap();
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        assert!(!site.is_written());
        assert_eq!(site.read(), b"more bytes");
        assert_eq!(site.fs.nodes.ledger().descriptors.open(), before);
    }

    #[test]
    fn the_server_itself_waits_with_writing_what_is_held_for_readers() {
        let site = WatchedFile::new();
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        let written = site.fs.write(&cred(), &site.file, 0, b"more");
        assert_eq!(written.unwrap_err(), Status::Delay);
        assert_eq!(site.wanted(), Some((site.file, LocalUse::Open)));
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        site.fs.write(&cred(), &site.file, 0, b"more").unwrap();
    }

    #[test]
    fn nothing_is_held_where_nobody_would_be_told() {
        let site = WatchedFile::new();
        let fs = Passthrough::open(site.folder.path(), PassthroughOptions::default()).unwrap();
        assert_eq!(LocalLocks::hold_file(&fs, &site.file, FileHold::Shared), Ok(false));
        assert_eq!(LocalLocks::hold_file(&fs, &site.file, FileHold::Free), Ok(true));
        let deaf = Some(Arc::<LeaseWatch>::default());
        let options = PassthroughOptions { leases: deaf, ..PassthroughOptions::default() };
        let fs = Passthrough::open(site.folder.path(), options).unwrap();
        assert_eq!(LocalLocks::hold_file(&fs, &site.file, FileHold::Shared), Ok(false));
    }

    #[test]
    fn half_of_all_descriptors_are_left_to_what_is_not_held() {
        let site = WatchedFile::with(8);
        let cred = cred();
        let handles = ["a", "b", "c"].map(|name| {
            std::fs::write(site.folder.path().join(name), "").unwrap();
            let name = Name::new(name.as_bytes()).unwrap();
            site.fs.lookup(&cred, &site.fs.root(), name).unwrap().node.handle
        });
        let hold = |at: usize, hold| LocalLocks::hold_file(&site.fs, &handles[at], hold);
        assert_eq!(hold(0, FileHold::Shared), Ok(true));
        assert_eq!(hold(1, FileHold::Exclusive), Ok(true));
        assert_eq!(hold(2, FileHold::Shared), Err(Status::Delay));
        assert_eq!(hold(1, FileHold::Free), Ok(true));
        assert_eq!(hold(2, FileHold::Shared), Ok(true));
    }

    #[test]
    fn a_file_that_is_held_anew_is_reported_again() {
        let site = WatchedFile::new();
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        site.fs.leases.held().files.get_mut(&site.file).unwrap().told = true;
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        let _opened = site.opens(&writing());
        assert_eq!(site.wanted(), Some((site.file, LocalUse::Open)));
        assert_eq!(site.hold(FileHold::Free), Ok(true));
    }

    #[test]
    fn a_change_that_could_not_be_reported_is_found() {
        let site = WatchedFile::new();
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        let _opened = site.opens(&writing());
        let watch = site.fs.leases.watch.as_ref().unwrap();
        site.hears(|| watch.take(|_| true).0.len() == 1);
        assert_eq!(LocalLocks::poll_wanted(&site.fs), None);
        watch.overflow();
        assert_eq!(LocalLocks::poll_wanted(&site.fs), Some((site.file, LocalUse::Open)));
        watch.overflow();
        assert_eq!(LocalLocks::poll_wanted(&site.fs), None, "it was reported already");
        assert_eq!(site.hold(FileHold::Free), Ok(true));
    }
}
