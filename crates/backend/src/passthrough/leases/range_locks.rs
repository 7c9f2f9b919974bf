//! Bytes of files that are locked for clients against other programs of this machine, by locks of
//! open file descriptions. These also conflict with the traditional locks of processes.

use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Handle, RangeLock, Result, Status};
use rustix::io::Errno;

use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::handles::cache::HandleHasher;
use crate::passthrough::handles::node::{Ledger, Node, Use};
use crate::range_lock::{self, Kind};

/// Files with locked bytes, by volume and handle. All locks of a file are on the one open file
/// description that its data are read and written through, which stays open meanwhile. Locks of two
/// descriptions conflict with each other, so that all file systems with the file share one.
#[derive(Debug, Default)]
pub(crate) struct RangeLocks(Mutex<Files>);

type Files = HashMap<(u64, Handle), LockedFile, BuildHasherDefault<HandleHasher>>;

/// A file with locked byte ranges.
#[derive(Debug)]
struct LockedFile {
    node: Arc<Node>,
    by: Description,
}

/// The open file description of the locks. A read-only one can exclude writers only.
#[derive(Debug, Clone)]
struct Description {
    file: Arc<File>,
    writable: bool,
}

/// The kernel's answer to a lock.
type Locked = std::result::Result<(), Errno>;

impl Passthrough {
    /// See [`comity_vfs::LocalLocks::hold_range`].
    pub(crate) fn hold_range(
        &self,
        node: &Handle,
        bytes: (u64, u64),
        lock: RangeLock,
    ) -> Result<bool> {
        if (lock, bytes) == (RangeLock::Free, (0, u64::MAX)) {
            return self.let_all_go(node).map(|()| true);
        }
        // The lock does not wait. Without the table's mutex, the description could be released
        // meanwhile.
        let known =
            self.holds().files().get(&self.hold_key(node)).map(|held| held.by.lock(lock, bytes));
        let locked = match known {
            Some(locked) => locked?,
            None if lock == RangeLock::Free => return Ok(true),
            None => self.begin_holding(node, (lock, bytes))?,
        };
        match locked {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
            Err(errno) => Err(status(errno)),
        }
    }

    /// See [`comity_vfs::LocalLocks::is_range_free`].
    pub(crate) fn is_range_free(
        &self,
        node: &Handle,
        bytes: (u64, u64),
        lock: RangeLock,
    ) -> Result<bool> {
        let known = self.holds().of(&self.hold_key(node));
        let by = known.map_or_else(|| self.held(node).map(|held| held.by), Ok)?;
        let bytes = length_of(bytes)?;
        range_lock::is_free(by.file.as_fd(), by.kind(lock), bytes).map_err(status)
    }

    /// Locks the first bytes of a file. The file stays in the table, even if the bytes are not
    /// free, until all of it is unlocked.
    fn begin_holding(
        &self,
        node: &Handle,
        (lock, bytes): (RangeLock, (u64, u64)),
    ) -> Result<Locked> {
        let held = self.held(node)?;
        let mut files = self.holds().files();
        if files.len() >= self.nodes.ledger().descriptors.locked_files_max() {
            return Err(Status::Delay);
        }
        held.node.set_locked(true);
        // The lock does not wait, whichever process has locked the bytes.
        files.entry(self.hold_key(node)).or_insert(held).by.lock(lock, bytes)
    }

    fn held(&self, node: &Handle) -> Result<LockedFile> {
        let node = self.regular(node)?;
        // A file that is open for writing has no shared lease.
        let file = match node.data(Use::Write) {
            Some(file) => Some(file),
            // Lock through a read-only descriptor, so that the shared lease survives.
            None if self.leases.is_shared(&node.handle) => None,
            None => self.data(&node, Use::Write).ok(),
        };
        let writable = file.is_some();
        let file = file.map_or_else(|| self.data(&node, Use::Read), Ok)?;
        Ok(LockedFile { node, by: Description { file, writable } })
    }

    fn holds(&self) -> &RangeLocks {
        self.siblings.holds()
    }

    fn hold_key(&self, node: &Handle) -> (u64, Handle) {
        (self.volume_number(node), *node)
    }

    /// Removes the entry and unlocks the bytes under one mutex: another caller that locks bytes of
    /// the file could otherwise get the same description, and lose its lock by the unlock.
    fn let_all_go(&self, node: &Handle) -> Result<()> {
        let (key, mut files) = (self.hold_key(node), self.holds().files());
        let Some(held) = files.get(&key) else { return Ok(()) };
        held.by.lock(RangeLock::Free, (0, u64::MAX))?.map_err(status)?;
        held.node.set_locked(false);
        let freed = files.remove(&key);
        drop(files);
        freed.iter().for_each(|held| held.node.end_writing());
        Ok(())
    }
}

impl RangeLocks {
    /// Returns the open file description of the locks on a file, if there is one.
    fn of(&self, file: &(u64, Handle)) -> Option<Description> {
        self.files().get(file).map(|held| held.by.clone())
    }

    /// Releases all files for which `is_over` returns true.
    pub(crate) fn end(&self, is_over: impl Fn(u64, &Arc<Ledger>) -> bool) {
        let mut files = self.files();
        let over = files.extract_if(|(mount, _), held| is_over(*mount, &held.node.ledger));
        let over: Vec<LockedFile> = over.map(|(_, held)| held).collect();
        drop(files);
        // The node may still be in use and must not stay marked as locked.
        over.iter().for_each(|held| held.node.set_locked(false));
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Description {
    fn lock(&self, lock: RangeLock, bytes: (u64, u64)) -> Result<Locked> {
        Ok(range_lock::lock(self.file.as_fd(), self.kind(lock), length_of(bytes)?, false))
    }

    const fn kind(&self, lock: RangeLock) -> Kind {
        match lock {
            RangeLock::Free => Kind::Unlock,
            RangeLock::Exclusive if self.writable => Kind::Exclusive,
            RangeLock::Shared | RangeLock::Exclusive => Kind::Shared,
        }
    }
}

/// Returns the offset and the length of a range; length 0 reaches to the end. The kernel cannot
/// count to the highest offsets, but files and locks of programs end before those.
fn length_of((first, last): (u64, u64)) -> Result<(u64, u64)> {
    const END: u64 = i64::MAX as u64;
    match (first, last) {
        (END.., _) => Err(Status::FBig),
        (_, END..) => Ok((first, 0)),
        _ => Ok((first, last - first + 1)),
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::{Cred, Fs, Gid, LocalLocks, Name, Uid};

    use super::*;
    use crate::passthrough::{Descriptors, PassthroughOptions, Siblings};

    const ALL: (u64, u64) = (0, u64::MAX);

    fn served(folder: &tempfile::TempDir, most: usize) -> (Passthrough, Handle) {
        std::fs::write(folder.path().join("file"), "some bytes").unwrap();
        let descriptors = Some(Descriptors::at_most(most));
        let options = PassthroughOptions { descriptors, ..PassthroughOptions::default() };
        let fs = Passthrough::open(folder.path(), options).unwrap();
        let cred = Cred::new(Uid::new(0), Gid::new(0));
        let found = fs.lookup(&cred, &fs.root(), Name::new(b"file").unwrap()).unwrap();
        (fs, found.node.handle)
    }

    #[test]
    fn bytes_are_held_against_programs_and_the_other_way_round() {
        let folder = tempfile::tempdir().unwrap();
        let (fs, file) = served(&folder, 1000);
        let path = folder.path().join("file");
        let program = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let lock = |kind, bytes| range_lock::lock(program.as_fd(), kind, bytes, false);
        let hold = |bytes, lock| LocalLocks::hold_range(&fs, &file, bytes, lock).unwrap();
        assert!(hold((2, 5), RangeLock::Exclusive));
        assert_eq!(lock(Kind::Shared, (5, 1)), Err(Errno::AGAIN));
        lock(Kind::Exclusive, (6, 0)).unwrap();
        assert!(!hold((0, 6), RangeLock::Shared));
        assert!(!LocalLocks::is_range_free(&fs, &file, (6, 6), RangeLock::Shared).unwrap());
        assert!(LocalLocks::is_range_free(&fs, &file, (0, 5), RangeLock::Exclusive).unwrap());
        assert_eq!(lock(Kind::Shared, (2, 1)), Err(Errno::AGAIN), "the refused lock took bytes");
        assert!(hold(ALL, RangeLock::Free));
        assert!(fs.holds().files().is_empty());
        lock(Kind::Exclusive, (0, 0)).unwrap();
        assert!(!LocalLocks::is_range_free(&fs, &file, (3, u64::MAX), RangeLock::Shared).unwrap());
        fs.release_identity().unwrap();
    }

    #[test]
    fn bytes_held_while_all_are_let_go_are_either_known_and_locked_or_neither() {
        let folder = tempfile::tempdir().unwrap();
        let (fs, file) = served(&folder, 1000);
        let path = folder.path().join("file");
        let program = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let (bytes, exclusive) = ((2, 5), RangeLock::Exclusive);
        for turn in 0..10_000 {
            assert!(LocalLocks::hold_range(&fs, &file, (0, 9), exclusive).unwrap());
            let start = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    assert_eq!(LocalLocks::hold_range(&fs, &file, ALL, RangeLock::Free), Ok(true));
                });
                start.wait();
                assert_eq!(LocalLocks::hold_range(&fs, &file, bytes, exclusive), Ok(true));
            });
            let is_known = fs.holds().files().contains_key(&fs.hold_key(&file));
            let is_locked = range_lock::is_free(program.as_fd(), Kind::Exclusive, (2, 4));
            assert_eq!(is_locked, Ok(!is_known), "turn {turn}");
            assert!(LocalLocks::hold_range(&fs, &file, ALL, RangeLock::Free).unwrap());
        }
        fs.release_identity().unwrap();
    }

    #[test]
    fn locked_files_count_among_the_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let (fs, file) = served(&folder, 1000);
        let before = fs.nodes.ledger().descriptors.open();
        assert!(LocalLocks::hold_range(&fs, &file, (0, 0), RangeLock::Shared).unwrap());
        assert_eq!(fs.nodes.ledger().descriptors.open(), before + 1);
        assert!(LocalLocks::hold_range(&fs, &file, ALL, RangeLock::Free).unwrap());
        assert_eq!(fs.nodes.ledger().descriptors.open(), before);
        let (fs, file) = served(&folder, 0);
        let refused = LocalLocks::hold_range(&fs, &file, (0, 0), RangeLock::Shared);
        assert_eq!(refused, Err(Status::Delay));
        fs.release_identity().unwrap();
    }

    #[test]
    fn bytes_are_held_when_all_descriptors_are_taken_by_what_could_be_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (fs, file) = served(&folder, 100);
        let cred = Cred::new(Uid::new(0), Gid::new(0));
        for number in 0..200 {
            let name = number.to_string();
            std::fs::write(folder.path().join(&name), "").unwrap();
            fs.lookup(&cred, &fs.root(), Name::new(name.as_bytes()).unwrap()).unwrap();
        }
        assert!(fs.nodes.ledger().descriptors.is_full());
        assert_eq!(LocalLocks::hold_range(&fs, &file, (0, 0), RangeLock::Exclusive), Ok(true));
        fs.release_identity().unwrap();
    }

    #[test]
    fn a_locked_file_stays_open_when_its_data_is_stable() {
        let folder = tempfile::tempdir().unwrap();
        let (fs, file) = served(&folder, 1000);
        let program = std::fs::File::open(folder.path().join("file")).unwrap();
        assert!(LocalLocks::hold_range(&fs, &file, ALL, RangeLock::Exclusive).unwrap());
        fs.node(&file).unwrap().end_writing();
        let mine = range_lock::lock(program.as_fd(), Kind::Shared, (0, 1), false);
        assert_eq!(mine, Err(Errno::AGAIN));
        let open = fs.nodes.ledger().descriptors.open();
        assert!(LocalLocks::hold_range(&fs, &file, ALL, RangeLock::Free).unwrap());
        assert_eq!(fs.nodes.ledger().descriptors.open(), open - 1);
        fs.release_identity().unwrap();
    }

    /// This is the case of an export and another one below it, or of two exports of one directory.
    #[test]
    fn bytes_locked_through_two_file_systems_have_one_lock() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        std::fs::write(folder.path().join("below/file"), "some bytes").unwrap();
        let siblings = Siblings::default();
        let serve = |path: &str| {
            let options = PassthroughOptions { siblings: siblings.clone(), ..Default::default() };
            Passthrough::open(&folder.path().join(path), options).unwrap()
        };
        let (above, below) = (serve(""), serve("below"));
        let cred = Cred::new(Uid::new(0), Gid::new(0));
        let found = below.lookup(&cred, &Fs::root(&below), Name::new(b"file").unwrap()).unwrap();
        let file = found.node.handle;
        assert_eq!(Fs::volume(&above, &file), Fs::volume(&below, &file));
        assert_eq!(LocalLocks::hold_range(&above, &file, (0, 4), RangeLock::Exclusive), Ok(true));
        assert_eq!(
            LocalLocks::is_range_free(&below, &file, (0, 4), RangeLock::Exclusive),
            Ok(true)
        );
        assert_eq!(LocalLocks::hold_range(&below, &file, (0, 9), RangeLock::Exclusive), Ok(true));
        drop(above);
        let program = std::fs::File::open(folder.path().join("below/file")).unwrap();
        let free = || range_lock::is_free(program.as_fd(), Kind::Shared, (0, 1)).unwrap();
        assert!(!free(), "the other file system still has the file");
        assert_eq!(LocalLocks::hold_range(&below, &file, ALL, RangeLock::Free), Ok(true));
        assert!(free());
        assert_eq!(LocalLocks::hold_range(&below, &file, (0, 4), RangeLock::Exclusive), Ok(true));
        drop(below);
        assert!(free(), "the lock outlives the last file system");
    }
}
