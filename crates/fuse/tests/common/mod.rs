//! Shared by the tests of mounts.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "a test may panic")]

pub mod open_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use comity_backend::{Memory, MemoryOptions, Passthrough, PassthroughOptions};
use comity_cache::{AttributeTimes, Cache, CacheOptions, Clock, Disk, WriteMode};
use comity_fuse::{FuseMount, Keep, Lower, Options, Plain};
use comity_vfs::Fs;
use tempfile::TempDir;

/// Returns whether this process can mount. Prints a message if not.
pub fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        println!("skipped: needs root and /dev/fuse");
    }
    can
}

/// A folder on which something is mounted.
pub struct Fixture {
    pub mount: Option<FuseMount>,
    pub dir: PathBuf,
    /// The mount is dropped first.
    pub folder: TempDir,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(self.mount.take());
        // A test that failed may have left a program that uses it.
        let _ = comity_fuse::unmount(&self.dir, true);
    }
}

/// A lower layer that lets the kernel cache everything for `time`.
pub fn kept(time: Duration) -> Arc<dyn Lower> {
    Arc::new(Plain { keep: Keep::both(time), missing: time })
}

/// Options for tests: groups are read for each request.
pub fn options() -> Options {
    Options { groups_life: Duration::ZERO, ..Options::default() }
}

/// Mounts a file system on a fresh folder.
pub fn mount(fs: Arc<dyn Fs>, lower: Arc<dyn Lower>) -> Fixture {
    mount_with(fs, lower, &options())
}

/// Mounts with options.
pub fn mount_with(fs: Arc<dyn Fs>, lower: Arc<dyn Lower>, options: &Options) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("mount");
    std::fs::create_dir(&dir).unwrap();
    let mount = FuseMount::new(fs, lower, &dir, options).unwrap();
    Fixture { mount: Some(mount), dir, folder }
}

/// A file system in memory.
pub fn memory() -> Arc<dyn Fs> {
    Arc::new(Memory::new(MemoryOptions::default()).unwrap())
}

/// A cache over a file system, on the disk in `folder`.
pub fn cached(fs: Arc<dyn Fs>, folder: &Path, write: WriteMode) -> Arc<Cache> {
    let clock: Clock = Arc::new(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
    });
    let options = CacheOptions { write, times: AttributeTimes::NONE, ..CacheOptions::default() };
    Arc::new(Cache::new(fs, Arc::new(Disk::open(folder).unwrap()), options, clock))
}

/// A folder as a file system.
pub fn passthrough(folder: &Path) -> Arc<dyn Fs> {
    Arc::new(Passthrough::open(folder, PassthroughOptions::default()).unwrap())
}
