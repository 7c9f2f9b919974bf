//! A medium in memory that crashes and fails on demand, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_vfs::SplitMix64;
use rustix::io::Errno;

use crate::medium::Medium;

/// Bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// Files, and their contents on stable storage.
#[derive(Debug, Default)]
pub(crate) struct MemoryMedium {
    files: Mutex<Files>,
    /// One more than the number of calls until all fail; 0 if they do not fail.
    calls_left: AtomicU64,
    free: AtomicU64,
    full: AtomicBool,
    read_only: AtomicBool,
    syncs: Mutex<()>,
    syncs_begun: AtomicU64,
    calls: AtomicU64,
}

#[derive(Debug, Default)]
struct Files {
    now: BTreeMap<String, Vec<u8>>,
    stable: BTreeMap<String, Vec<u8>>,
}

impl MemoryMedium {
    /// Makes all contents stable.
    pub(crate) fn settle(&self) {
        let mut files = self.lock();
        files.stable = files.now.clone();
    }

    /// Simulates a loss of power: of what is not stable, a random part survives, for each sector
    /// and each name.
    pub(crate) fn crash(&self, seed: u64) {
        let mut coins = SplitMix64::new(seed);
        let mut files = self.lock();
        let names: BTreeSet<String> =
            files.now.keys().chain(files.stable.keys()).cloned().collect();
        for name in names {
            let sides = [files.now.get(&name).cloned(), files.stable.get(&name).cloned()];
            match survivor(sides, &mut coins) {
                Some(content) => files.now.insert(name, content),
                None => files.now.remove(&name),
            };
        }
        files.stable = files.now.clone();
    }

    /// Makes all calls fail after this number of calls.
    pub(crate) fn fail_after(&self, calls: u64) {
        self.calls_left.store(calls + 1, Ordering::SeqCst);
    }

    /// Makes calls work again.
    pub(crate) fn mend(&self) {
        self.calls_left.store(0, Ordering::SeqCst);
    }

    /// Sets the free space in bytes; 0 means unlimited.
    pub(crate) fn set_free(&self, bytes: u64) {
        self.free.store(bytes, Ordering::SeqCst);
    }

    /// Makes writes that extend files fail with ENOSPC.
    pub(crate) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// Makes all calls that change files fail, as if the disk were mounted read-only.
    pub(crate) fn set_read_only(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::SeqCst);
    }

    fn change(&self) -> io::Result<()> {
        self.call()?;
        if self.read_only.load(Ordering::SeqCst) { Err(Errno::ROFS.into()) } else { Ok(()) }
    }

    /// Blocks all calls of `sync` until the guard is dropped.
    pub(crate) fn hold_syncs(&self) -> MutexGuard<'_, ()> {
        self.syncs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of calls of `sync` that have begun.
    pub(crate) fn syncs_begun(&self) -> u64 {
        self.syncs_begun.load(Ordering::SeqCst)
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().now.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    fn call(&self) -> io::Result<()> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.calls_left.load(Ordering::SeqCst) {
            0 => Ok(()),
            1 => Err(Errno::IO.into()),
            _ => {
                self.calls_left.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        }
    }
}

/// A random mixture of the current and the stable content of a file.
fn survivor([now, stable]: [Option<Vec<u8>>; 2], coins: &mut SplitMix64) -> Option<Vec<u8>> {
    if now == stable {
        return now;
    }
    if (now.is_none() || stable.is_none()) && coins.below(2) == 0 {
        return None;
    }
    let (now, stable) = (now.unwrap_or_default(), stable.unwrap_or_default());
    let length = if coins.below(2) == 0 { now.len() } else { stable.len() };
    let mut content = Vec::with_capacity(length);
    for start in (0..length).step_by(SECTOR) {
        let side = if coins.below(2) == 0 { &now } else { &stable };
        let end = (start + SECTOR).min(length);
        let part = side.get(start..end.min(side.len()).max(start)).unwrap_or_default();
        content.extend_from_slice(part);
        content.resize(end, 0);
    }
    Some(content)
}

impl Medium for MemoryMedium {
    fn read(&self, path: &str, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.call()?;
        let files = self.lock();
        let content = files.now.get(path).map_or(&[][..], Vec::as_slice);
        let rest = content.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change()?;
        let mut files = self.lock();
        let content = files.now.entry(path.to_owned()).or_default();
        let end = offset as usize + bytes.len();
        if content.len() < end {
            if self.full.load(Ordering::SeqCst) {
                return Err(Errno::NOSPC.into());
            }
            content.resize(end, 0);
        }
        content[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn truncate(&self, path: &str, length: u64) -> io::Result<()> {
        self.change()?;
        if let Some(content) = self.lock().now.get_mut(path) {
            content.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.change()?;
        self.lock().now.remove(path);
        Ok(())
    }

    fn sync(&self, path: &str) -> io::Result<()> {
        self.syncs_begun.fetch_add(1, Ordering::SeqCst);
        drop(self.hold_syncs());
        self.change()?;
        let mut files = self.lock();
        match files.now.get(path).cloned() {
            Some(content) => files.stable.insert(path.to_owned(), content),
            None => files.stable.remove(path),
        };
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.call()?;
        let files = self.lock();
        let prefix = format!("{folder}/");
        let below = files.now.keys().filter_map(|name| name.strip_prefix(&prefix));
        let first = below.filter_map(|rest| rest.split('/').next()).map(str::to_owned);
        Ok(first.collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn used(&self, path: &str) -> io::Result<u64> {
        self.call()?;
        Ok(self.lock().now.get(path).map_or(0, |content| content.len() as u64))
    }

    fn length(&self, path: &str) -> io::Result<u64> {
        self.used(path)
    }

    fn free(&self) -> io::Result<u64> {
        match self.free.load(Ordering::SeqCst) {
            0 => Ok(1 << 50),
            free => Ok(free),
        }
    }
}
