//! Files that are held for clients against other programs of this machine, by leases of the kernel
//! (`F_SETLEASE`).
//!
//! A lease is broken by any conflicting open, the server's own among them. So there is none beside
//! the descriptors that nodes keep: one for readers needs that nothing is open for writing, one
//! against all that data goes through a single description.

use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{FileHold, Handle, Result, Status};
use rustix::fs::OFlags;

use super::Passthrough;
use super::cache::HandleHasher;
use super::identity::Identity;
use super::node::{Node, Use};
use crate::{LeaseWatch, sys};

/// Files that are held.
#[derive(Debug)]
pub(super) struct Leases {
    /// Who is told that they are wanted.
    watch: Option<Arc<LeaseWatch>>,
    /// Whether files of all users can be held, or none is to be.
    pub(super) hold_all: bool,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    files: HashMap<Handle, Lease, BuildHasherDefault<HandleHasher>>,
    /// Which file has a lease by a descriptor.
    known: HashMap<RawFd, Handle>,
    /// What programs wait for and nobody has been told of.
    wanted: Vec<Handle>,
    /// How often all files had to be looked at.
    overflows: u64,
}

/// A file that is held. Its node stays in use.
#[derive(Debug)]
struct Lease {
    node: Arc<Node>,
    file: Arc<File>,
    hold: FileHold,
    /// Whether it was told that a program waits for it.
    told: bool,
}

impl Leases {
    /// None yet; none ever without somebody who is told.
    pub(super) fn new(watch: Option<Arc<LeaseWatch>>, identity: Identity) -> Self {
        let hold_all = watch.is_none() || Identity::may_lease_all();
        let watch = watch.filter(|_| identity.may_lease());
        Self { watch, hold_all, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether only readers may open a file besides the server, and the server, too.
    pub(super) fn is_shared(&self, file: &Handle) -> bool {
        self.held().files.get(file).is_some_and(|lease| lease.hold == FileHold::Shared)
    }

    /// Whether a file is held just like this, if it is, and nobody waits for it.
    fn stands(&self, file: &Handle, hold: FileHold) -> Option<bool> {
        let held = self.held();
        let lease = held.files.get(file).filter(|lease| lease.hold == hold)?;
        Some(lease.is_whole())
    }

    fn remove(&self, file: &Handle) -> Option<Lease> {
        let mut held = self.held();
        let lease = held.files.remove(file)?;
        held.known.remove(&lease.file.as_raw_fd());
        held.wanted.retain(|wanted| wanted != file);
        Some(lease)
    }
}

impl Passthrough {
    /// See [`comity_vfs::Fs::hold_file`]. There is one call for a file at a time.
    pub(super) fn hold_file(&self, file: &Handle, hold: FileHold) -> Result<bool> {
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
        let held = self.begin_lease(file, hold, thread);
        if held != Ok(true) {
            self.nodes.ledger().descriptors.unpin();
        }
        held
    }

    /// See [`comity_vfs::Fs::poll_wanted`].
    pub(super) fn poll_wanted(&self) -> Option<Handle> {
        let watch = self.leases.watch.as_ref()?;
        // Who takes a lease has this, too: what is told at once is not unknown.
        let mut held = self.leases.held();
        held.hear(watch);
        held.wanted.pop()
    }

    fn begin_lease(&self, handle: &Handle, hold: FileHold, thread: i32) -> Result<bool> {
        let node = self.regular(handle)?;
        let Some(file) = self.sole_descriptor(&node, hold)? else { return Ok(false) };
        let mut held = self.leases.held();
        let lease = Lease { node, file, hold, told: false };
        if let Err(errno) = lease.begin(thread) {
            drop(held);
            tracing::debug!(%errno, "a file cannot be leased, and so it is not delegated");
            self.after(&lease);
            return Ok(false);
        }
        held.known.insert(lease.file.as_raw_fd(), *handle);
        held.files.insert(*handle, lease);
        Ok(true)
    }

    /// The one that may be open while the file is held so; `None` if there must be another.
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
        // The kernel has taken it if a program waited for too long.
        let _ = sys::set_lease(lease.file.as_fd(), libc::F_UNLCK);
        self.after(&lease);
        self.nodes.ledger().descriptors.unpin();
    }

    /// Data may go through two descriptors again, as if there had been no lease.
    fn after(&self, lease: &Lease) {
        if lease.hold != FileHold::Exclusive {
            return;
        }
        if let Some(reading) = lease.node.use_both() {
            let opened = self.open_data(&lease.node, OFlags::RDONLY);
            // Else it goes on through the other one.
            let _ = opened.map(|file| sys::stand_for(reading, file.as_fd()));
        }
        lease.node.end_writing();
    }
}

impl Held {
    /// Finds out what programs wait for.
    fn hear(&mut self, watch: &LeaseWatch) {
        let (files, overflows) = watch.take(|file| self.known.contains_key(&file));
        let heard: Vec<Handle> = if overflows == self.overflows {
            files.iter().filter_map(|file| self.known.get(file)).copied().collect()
        } else {
            self.files.keys().copied().collect()
        };
        self.overflows = overflows;
        for handle in heard {
            // It may have been another file that went by this descriptor.
            let lease = self.files.get_mut(&handle);
            if let Some(lease) = lease.filter(|lease| !lease.told && !lease.is_whole()) {
                lease.told = true;
                self.wanted.push(handle);
            }
        }
    }
}

impl Lease {
    fn begin(&self, thread: i32) -> sys::Result<()> {
        sys::tell_thread(self.file.as_fd(), thread)?;
        sys::set_lease(self.file.as_fd(), self.kind())
    }

    /// Whether nobody waits for it, and it has not been taken.
    fn is_whole(&self) -> bool {
        sys::lease(self.file.as_fd()) == Ok(self.kind())
    }

    fn kind(&self) -> libc::c_int {
        if self.hold == FileHold::Shared { libc::F_RDLCK } else { libc::F_WRLCK }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use comity_vfs::{Cred, Disk, Fs, Gid, Name, ReadInto, SetAttr, Uid};

    use super::super::{Descriptors, PassthroughOptions};
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);
    const MOMENT: Duration = Duration::from_millis(50);

    /// A file system with one file, and a thread that is told what programs want.
    struct Site {
        folder: tempfile::TempDir,
        fs: Passthrough,
        file: Handle,
        told: Receiver<()>,
        seen: Sender<()>,
        _end: UnixStream,
    }

    impl Site {
        fn new() -> Self {
            Self::with(1000)
        }

        fn with(descriptors: usize) -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("file"), "some bytes").unwrap();
            let watch = Arc::<LeaseWatch>::default();
            let (end, ended) = UnixStream::pair().unwrap();
            let ((say, told), (seen, is_seen)) = (channel(), channel());
            let listening = Arc::clone(&watch);
            std::thread::spawn(move || {
                let listener = listening.listen().unwrap();
                say.send(()).unwrap();
                while listener.wait(ended.as_fd()).unwrap() {
                    let _ = say.send(()).map(|()| is_seen.recv());
                }
            });
            told.recv().unwrap();
            let descriptors = Some(Descriptors::at_most(descriptors));
            let options =
                PassthroughOptions { descriptors, leases: Some(watch), cross_mounts: false };
            let fs = Passthrough::open(folder.path(), options).unwrap();
            let name = Name::new(b"file").unwrap();
            let file = fs.lookup(&cred(), &fs.root(), name).unwrap().node.handle;
            Self { folder, fs, file, told, seen, _end: end }
        }

        fn hold(&self, hold: FileHold) -> Result<bool> {
            Fs::hold_file(&self.fs, &self.file, hold)
        }

        /// A program that opens the file, or begins to.
        fn opens(&self, how: &OpenOptions) -> Receiver<File> {
            let (path, how) = (self.folder.path().join("file"), how.clone());
            let (say, opened) = channel();
            std::thread::spawn(move || say.send(how.open(path).unwrap()));
            opened
        }

        /// What a program waits for, when it has begun to.
        fn wanted(&self) -> Option<Handle> {
            self.told.recv_timeout(PATIENCE).unwrap();
            let wanted = Fs::poll_wanted(&self.fs);
            self.seen.send(()).unwrap();
            wanted
        }

        fn read(&self) -> Vec<u8> {
            let mut bytes = Vec::new();
            let mut into = ReadInto { bytes: &mut bytes, by_reference_from: u32::MAX };
            self.fs.read(&cred(), &self.file, 0, 100, &mut into).unwrap();
            bytes
        }

        /// Whether somebody has the file open for writing.
        fn is_written(&self) -> bool {
            let program = File::open(self.folder.path().join("file")).unwrap();
            sys::set_lease(program.as_fd(), libc::F_RDLCK).is_err()
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            self.fs.release_identity().unwrap();
        }
    }

    fn cred() -> Cred<Disk> {
        Cred::new(Uid::new(0), Gid::new(0))
    }

    fn reading() -> OpenOptions {
        OpenOptions::new().read(true).clone()
    }

    fn writing() -> OpenOptions {
        OpenOptions::new().write(true).clone()
    }

    fn emptying() -> OpenOptions {
        OpenOptions::new().write(true).truncate(true).clone()
    }

    #[test]
    fn who_writes_a_file_that_is_held_for_readers_is_told_of_and_waits() {
        for program in [writing(), emptying()] {
            let site = Site::new();
            assert_eq!(site.hold(FileHold::Shared), Ok(true));
            site.opens(&reading()).recv_timeout(PATIENCE).unwrap();
            let opened = site.opens(&program);
            assert_eq!(site.wanted(), Some(site.file));
            assert_eq!(Fs::poll_wanted(&site.fs), None, "it was told already");
            assert!(opened.recv_timeout(MOMENT).is_err());
            assert_eq!(site.hold(FileHold::Shared), Ok(false), "somebody waits for it");
            assert_eq!(site.read(), b"some bytes");
            assert_eq!(site.hold(FileHold::Free), Ok(true));
            opened.recv_timeout(PATIENCE).unwrap();
        }
    }

    #[test]
    fn who_reads_a_file_that_is_held_against_all_waits_and_sees_what_was_written() {
        let site = Site::new();
        assert_eq!(site.hold(FileHold::Exclusive), Ok(true));
        let opened = site.opens(&reading());
        assert_eq!(site.wanted(), Some(site.file));
        assert!(opened.recv_timeout(MOMENT).is_err());
        site.fs.write(&cred(), &site.file, 0, b"more").unwrap();
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        let program = opened.recv_timeout(PATIENCE).unwrap();
        assert_eq!(std::io::read_to_string(program).unwrap(), "more bytes");
    }

    #[test]
    fn what_a_program_has_open_cannot_be_held() {
        let site = Site::new();
        let program = site.opens(&reading()).recv().unwrap();
        assert_eq!(site.hold(FileHold::Exclusive), Ok(false));
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        drop(program);
        let program = site.opens(&writing()).recv().unwrap();
        assert_eq!(site.hold(FileHold::Shared), Ok(false));
        assert_eq!(site.hold(FileHold::Exclusive), Ok(false));
        drop(program);
        assert_eq!(site.hold(FileHold::Exclusive), Ok(true));
        assert_eq!(site.hold(FileHold::Shared), Ok(true), "one gives way to the other");
    }

    #[test]
    fn what_the_server_does_itself_is_in_nobodys_way() {
        let site = Site::new();
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
        let ends = |lock| Fs::hold_range(&site.fs, &site.file, (0, u64::MAX), lock);
        assert_eq!(ends(comity_vfs::RangeLock::Exclusive), Ok(true));
        assert_eq!(ends(comity_vfs::RangeLock::Free), Ok(true));
        assert_eq!(site.hold(FileHold::Exclusive), Ok(true), "it is held as before");
        assert_eq!(site.hold(FileHold::Shared), Ok(false), "not before it is stable");
        site.fs.commit(&site.file).unwrap();
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        assert_eq!(site.read(), b"SOME!");
        site.fs.commit(&site.file).unwrap();
        assert_eq!(ends(comity_vfs::RangeLock::Shared), Ok(true));
        assert_eq!(ends(comity_vfs::RangeLock::Free), Ok(true));
        assert_eq!(site.hold(FileHold::Shared), Ok(true), "it is held as before");
        assert!(site.told.try_recv().is_err(), "nobody else wanted it");
    }

    #[test]
    fn what_was_held_against_all_can_be_executed_afterwards() {
        let site = Site::new();
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
        let site = Site::new();
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        let written = site.fs.write(&cred(), &site.file, 0, b"more");
        assert_eq!(written.unwrap_err(), Status::Delay);
        assert_eq!(site.wanted(), Some(site.file));
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        site.fs.write(&cred(), &site.file, 0, b"more").unwrap();
    }

    #[test]
    fn nothing_is_held_where_nobody_would_be_told() {
        let site = Site::new();
        let fs = Passthrough::open(site.folder.path(), PassthroughOptions::default()).unwrap();
        assert_eq!(Fs::hold_file(&fs, &site.file, FileHold::Shared), Ok(false));
        assert_eq!(Fs::hold_file(&fs, &site.file, FileHold::Free), Ok(true));
        let deaf = Some(Arc::<LeaseWatch>::default());
        let options = PassthroughOptions { leases: deaf, ..PassthroughOptions::default() };
        let fs = Passthrough::open(site.folder.path(), options).unwrap();
        assert_eq!(Fs::hold_file(&fs, &site.file, FileHold::Shared), Ok(false));
    }

    #[test]
    fn half_of_all_descriptors_are_left_to_what_is_not_held() {
        let site = Site::with(8);
        let cred = cred();
        let handles = ["a", "b", "c"].map(|name| {
            std::fs::write(site.folder.path().join(name), "").unwrap();
            let name = Name::new(name.as_bytes()).unwrap();
            site.fs.lookup(&cred, &site.fs.root(), name).unwrap().node.handle
        });
        let hold = |at: usize, hold| Fs::hold_file(&site.fs, &handles[at], hold);
        assert_eq!(hold(0, FileHold::Shared), Ok(true));
        assert_eq!(hold(1, FileHold::Exclusive), Ok(true));
        assert_eq!(hold(2, FileHold::Shared), Err(Status::Delay));
        assert_eq!(hold(1, FileHold::Free), Ok(true));
        assert_eq!(hold(2, FileHold::Shared), Ok(true));
    }

    #[test]
    fn what_could_not_be_told_is_found() {
        let site = Site::new();
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        let _opened = site.opens(&writing());
        site.told.recv_timeout(PATIENCE).unwrap();
        let watch = site.fs.leases.watch.as_ref().unwrap();
        assert_eq!(watch.take(|_| true).0.len(), 1, "lost");
        assert_eq!(Fs::poll_wanted(&site.fs), None);
        watch.overflow();
        assert_eq!(Fs::poll_wanted(&site.fs), Some(site.file));
        watch.overflow();
        assert_eq!(Fs::poll_wanted(&site.fs), None, "it was told already");
        assert_eq!(site.hold(FileHold::Free), Ok(true));
    }
}
