//! Tests: which calls a cache saves, and which guarantees it keeps.

mod below;
mod delegations;
mod directories;
mod late;
mod losses;
mod notices;
mod reading;
mod writing;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use comity_backend::{Memory, MemoryOptions};
use comity_vfs::layers::Verb;
use comity_vfs::{
    Create, Cred, Data, Disk, Fs, Gid, Handle, LockOwner, LockRequest, Mode, Name, OpenAccess,
    OpenId, OpenedFile, RangeLock, ReadInto, Result, SetAttr, Uid,
};

use self::below::Below;
use super::Cache;
use crate::memory_medium::MemoryMedium;
use crate::options::{CacheOptions, Clock};

/// A cache over a file system in memory that other clients may change too.
pub(super) struct World {
    pub(super) cache: Cache,
    pub(super) below: Arc<Below>,
    pub(super) medium: Arc<MemoryMedium>,
    now: Arc<AtomicU64>,
    options: CacheOptions,
}

pub(super) fn cred(uid: u32) -> Cred<Disk> {
    Cred::new(Uid::new(uid), Gid::new(uid))
}

pub(super) fn root() -> Cred<Disk> {
    cred(0)
}

pub(super) fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

/// Waits until a condition holds; panics after ten seconds.
pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "not within 10 s: {what}");
        thread::yield_now();
    }
}

impl World {
    pub(super) fn new(options: CacheOptions) -> Self {
        let memory = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
        let (below, medium) = (Below::new(memory), Arc::new(MemoryMedium::default()));
        let now = Arc::new(AtomicU64::new(1_000_000));
        let cache = cache(&below, &medium, options, &now);
        Self { cache, below, medium, now, options }
    }

    /// The same after a restart of the process; the disk has kept everything.
    pub(super) fn again(self) -> Self {
        let cache = cache(&self.below, &self.medium, self.options, &self.now);
        Self { cache, ..self }
    }

    /// The same after the process was killed: the contents of its memory are lost.
    pub(super) fn killed(self) -> Self {
        self.killed_and(Below::mend)
    }

    /// The same, and the server cannot be reached at the start.
    pub(super) fn killed_while_cut(self) -> Self {
        let world = self.killed_and(Below::cut);
        world.below.mend();
        world
    }

    /// Kills the process, and does something before the next start.
    fn killed_and(self, work: impl FnOnce(&Below)) -> Self {
        let Self { cache: old, below, medium, now, options } = self;
        // Dropping the old cache must not send unsent data.
        medium.fail_after(0);
        below.cut();
        drop(old);
        work(&below);
        medium.mend();
        let cache = cache(&below, &medium, options, &now);
        Self { cache, below, medium, now, options }
    }

    /// Advances the clock by milliseconds.
    pub(super) fn pass(&self, milliseconds: u64) {
        self.now.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Makes a file as another client.
    pub(super) fn file(&self, file: &str, data: &[u8]) -> Handle {
        let how = Create::Guarded(SetAttr { mode: Some(Mode::new(0o644)), ..SetAttr::default() });
        let fs = self.below.others();
        let made = fs.create(&root(), &fs.root(), name(file), &how).unwrap().value;
        self.change(&made.handle, 0, data);
        made.handle
    }

    /// Writes as another client.
    pub(super) fn change(&self, node: &Handle, offset: u64, data: &[u8]) {
        let fs = self.below.others();
        assert_eq!(fs.write(&root(), node, offset, data).unwrap().value as usize, data.len());
    }

    /// Reads the file as another client.
    pub(super) fn seen(&self, node: &Handle) -> Vec<u8> {
        read(self.below.others(), &root(), node).unwrap()
    }

    pub(super) fn read(&self, node: &Handle) -> Vec<u8> {
        read(&self.cache, &root(), node).unwrap()
    }

    pub(super) fn write(&self, node: &Handle, offset: u64, data: &[u8]) {
        let written = self.cache.write(&root(), node, offset, data).unwrap();
        assert_eq!(written.value as usize, data.len());
    }

    /// Number of calls of a verb that reached the file system below.
    pub(super) fn calls(&self, verb: Verb) -> u64 {
        self.below.calls(verb)
    }

    /// Number of all calls.
    pub(super) fn all_calls(&self) -> u64 {
        Verb::ALL.iter().map(|verb| self.calls(*verb)).sum()
    }
}

fn cache(
    below: &Arc<Below>,
    medium: &Arc<MemoryMedium>,
    options: CacheOptions,
    now: &Arc<AtomicU64>,
) -> Cache {
    let now = Arc::clone(now);
    let clock: Clock = Arc::new(move || now.load(Ordering::SeqCst));
    Cache::new(Arc::clone(below) as Arc<dyn Fs>, Arc::clone(medium) as _, options, clock)
}

/// Opens a file, which is delegated with it.
pub(super) fn open(world: &World, node: &Handle) -> OpenedFile {
    world.below.delegates.store(true, Ordering::SeqCst);
    world.cache.open_files().unwrap().open(&root(), node, None, OpenAccess::Both).unwrap()
}

/// Unlocks all bytes.
pub(super) fn unlock(world: &World, open: OpenId) -> Result<()> {
    let (bytes, owner) = ((0, u64::MAX), LockOwner(1));
    let request = LockRequest { open, owner, bytes, lock: RangeLock::Free, waits: false };
    world.cache.open_files().unwrap().lock(&request).map(drop)
}

/// Reads a whole file, in pieces of 10,000 bytes.
pub(super) fn read(fs: &dyn Fs, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let before = all.len();
        let mut into = ReadInto::new(&mut all);
        let read = fs.read(cred, node, before as u64, 10_000, &mut into)?;
        assert!(matches!(read.data, Data::Appended(count) if count as usize == all.len() - before));
        if read.eof {
            return Ok(all);
        }
        assert!(all.len() > before, "a read returned neither data nor the end of the file");
    }
}
