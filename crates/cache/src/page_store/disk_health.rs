//! The health of the cache disk: a disk that keeps failing is not used any longer.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;

use crate::limits::FAILURES_MAX;

/// Counts failures of the disk.
#[derive(Debug, Default)]
pub(crate) struct DiskHealth {
    failures: AtomicU32,
    failed: AtomicBool,
    full: AtomicBool,
    damaged: AtomicU64,
}

impl DiskHealth {
    /// Notes the outcome of a call; returns its value if it succeeded. After a failure the cache
    /// continues without the value.
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
            tracing::error!(%error, "the cache disk keeps failing; the cache continues without it");
        }
    }

    /// Notes a page that does not match its checksum.
    pub(crate) fn note_damage(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of damaged pages found.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Returns whether the disk is still used.
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
    fn a_disk_that_keeps_failing_is_not_used_any_longer() {
        let health = DiskHealth::default();
        for _ in 1..FAILURES_MAX {
            assert_eq!(health.note(failure(Errno::IO)), None);
        }
        assert_eq!(health.note(Ok(1)), Some(1));
        for _ in 1..FAILURES_MAX {
            health.note(failure(Errno::IO));
        }
        assert!(health.is_usable(), "a success resets the count");
        health.note(failure(Errno::IO));
        assert!(!health.is_usable());
    }

    #[test]
    fn a_full_disk_does_not_count_as_failing() {
        let health = DiskHealth::default();
        for _ in 0..2 * FAILURES_MAX {
            health.note(failure(Errno::NOSPC));
        }
        assert!(health.is_usable() && health.take_full() && !health.take_full());
    }
}
