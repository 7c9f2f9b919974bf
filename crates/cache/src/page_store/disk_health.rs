//! The state of the cache disk: one that fails is not used any longer.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;

use crate::limits::FAILURES_MAX;

/// Counts what goes wrong.
#[derive(Debug, Default)]
pub(crate) struct DiskHealth {
    failures: AtomicU32,
    failed: AtomicBool,
    full: AtomicBool,
    damaged: AtomicU64,
}

impl DiskHealth {
    /// Notes the outcome of a call; returns its value if it worked. The cache goes on without it.
    pub(crate) fn note<T>(&self, outcome: io::Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.failures.store(0, Ordering::Relaxed);
                Some(value)
            }
            Err(error) => {
                self.note_failure(&error);
                None
            }
        }
    }

    fn note_failure(&self, error: &io::Error) {
        let full = [Errno::NOSPC, Errno::DQUOT].map(|errno| Some(errno.raw_os_error()));
        if full.contains(&error.raw_os_error()) {
            self.full.store(true, Ordering::Relaxed);
            return;
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if failures >= FAILURES_MAX && !self.failed.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "the cache disk fails: going on without it");
        }
    }

    /// Notes a page that does not match its checksum.
    pub(crate) fn note_damage(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }

    /// The pages that were damaged.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Returns whether the disk is worth a try.
    pub(crate) fn is_usable(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
    }

    /// Returns whether the disk was full since the last call.
    pub(crate) fn take_full(&self) -> bool {
        self.full.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(errno: Errno) -> io::Result<()> {
        Err(errno.into())
    }

    #[test]
    fn a_disk_that_fails_again_and_again_is_given_up() {
        let health = DiskHealth::default();
        for _ in 1..FAILURES_MAX {
            assert_eq!(health.note(failure(Errno::IO)), None);
        }
        assert_eq!(health.note(Ok(1)), Some(1));
        for _ in 1..FAILURES_MAX {
            health.note(failure(Errno::IO));
        }
        assert!(health.is_usable(), "one success in between");
        health.note(failure(Errno::IO));
        assert!(!health.is_usable());
    }

    #[test]
    fn a_full_disk_is_no_failure() {
        let health = DiskHealth::default();
        for _ in 0..2 * FAILURES_MAX {
            health.note(failure(Errno::NOSPC));
        }
        assert!(health.is_usable() && health.take_full() && !health.take_full());
    }
}
