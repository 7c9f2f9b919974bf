//! A cache over any `Fs` is an `Fs`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use comity_backend::{Memory, MemoryOptions};
use comity_cache::{AttributeTimes, Cache, CacheOptions, Clock, Disk, WriteMode};
use comity_conformance::{Needs, run};
use comity_vfs::{Cred, Gid, Uid};

fn check(what: &str, options: CacheOptions) {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::open(folder.path()).unwrap());
    let clock: Clock = Arc::new(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
    });
    let memory = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
    let cache = Cache::new(memory, disk, options, clock);
    let report = run(&cache, &Cred::new(Uid::new(0), Gid::new(0)), Needs::ALL);
    println!("{what}: {report}");
    assert!(report.failed.is_empty(), "{what}: {report}");
}

#[test]
fn a_cache_that_writes_through_is_an_fs() {
    check("through", CacheOptions { write: WriteMode::Through, ..CacheOptions::default() });
}

#[test]
fn a_cache_that_writes_later_is_an_fs() {
    let (write, times) = (WriteMode::Memory, AttributeTimes::NONE);
    check("memory, asked always", CacheOptions { write, times, ..CacheOptions::default() });
    check("journal", CacheOptions { write: WriteMode::Journal, ..CacheOptions::default() });
}
