use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use comity_vfs::{Handle, Result, Status};

/// Most objects whose failed barrier is remembered. Beyond it a failure counts for the whole
/// volume.
const SYNC_ERRORS_MAX: usize = 4_096;

/// Time for which a barrier that failed for lack of space is remembered. Clients that have written
/// before will commit within that time and get the error (Linux writes dirty pages after 30 s); a
/// client that frees space and writes again need not wait for a restart.
const SPACE_FAILURE: Duration = Duration::from_secs(90);

/// Objects with a failed barrier. They are remembered longer than the node, because the kernel
/// reports lost data only once.
#[derive(Debug, Default)]
pub(crate) struct SyncErrors {
    count: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    objects: HashMap<Handle, Failure>,
    /// Mounts with more failed objects than can be remembered: all their objects count as failed.
    volumes: HashMap<u32, Failure>,
}

#[derive(Debug, Clone, Copy)]
struct Failure {
    status: Status,
    at: Instant,
}

impl SyncErrors {
    /// Checks that no earlier barrier of the object is known to have failed.
    ///
    /// # Errors
    /// The error of the earlier barrier.
    pub(crate) fn of(&self, handle: &Handle, now: Instant) -> Result<()> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let table = self.table();
        let volume = table.volumes.get(&volume_id(handle));
        match table.objects.get(handle).or(volume) {
            Some(failure) if failure.holds(now) => Err(failure.status),
            _ => Ok(()),
        }
    }

    /// Remembers that a barrier of the object failed.
    pub(crate) fn keep(&self, handle: &Handle, status: Status, now: Instant) {
        let failure = Failure { status, at: now };
        let mut table = self.table();
        if table.objects.len() >= SYNC_ERRORS_MAX {
            table.objects.retain(|_, failure| failure.holds(now));
        }
        if table.objects.len() < SYNC_ERRORS_MAX {
            table.objects.insert(*handle, failure);
        } else {
            table.volumes.insert(volume_id(handle), failure);
        }
        self.count.store(table.objects.len() + table.volumes.len(), Ordering::Release);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failure {
    /// A failure of the medium lasts; one for lack of space may be over.
    fn holds(&self, now: Instant) -> bool {
        let passes = matches!(self.status, Status::NoSpc | Status::DQuot);
        !passes || now.saturating_duration_since(self.at) < SPACE_FAILURE
    }
}

/// Returns the number of the volume, with which every handle of this crate begins.
fn volume_id(handle: &Handle) -> u32 {
    handle.bytes().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(volume: u32, number: u32) -> Handle {
        let bytes = [volume.to_be_bytes(), [0; 4], number.to_be_bytes()].concat();
        Handle::new(&bytes).unwrap()
    }

    #[test]
    fn a_medium_that_failed_stays_so_and_a_full_one_does_not() {
        let (failures, now) = (SyncErrors::default(), Instant::now());
        failures.keep(&handle(1, 1), Status::Io, now);
        failures.keep(&handle(1, 2), Status::NoSpc, now);
        assert_eq!(failures.of(&handle(1, 1), now), Err(Status::Io));
        assert_eq!(failures.of(&handle(1, 2), now), Err(Status::NoSpc));
        assert_eq!(failures.of(&handle(1, 3), now), Ok(()));
        let later = now + SPACE_FAILURE;
        assert_eq!(failures.of(&handle(1, 1), later), Err(Status::Io));
        assert_eq!(failures.of(&handle(1, 2), later), Ok(()));
    }

    #[test]
    fn more_failures_than_are_remembered_count_for_the_whole_volume() {
        let (failures, now) = (SyncErrors::default(), Instant::now());
        for number in 0..=SYNC_ERRORS_MAX as u32 {
            failures.keep(&handle(1, number), Status::Io, now);
        }
        assert_eq!(failures.of(&handle(1, u32::MAX), now), Err(Status::Io));
        assert_eq!(failures.of(&handle(2, 0), now), Ok(()));
        assert_eq!(failures.table().objects.len(), SYNC_ERRORS_MAX);
    }

    #[test]
    fn failures_that_are_over_make_room() {
        let (failures, now) = (SyncErrors::default(), Instant::now());
        for number in 0..SYNC_ERRORS_MAX as u32 {
            failures.keep(&handle(1, number), Status::NoSpc, now);
        }
        let later = now + SPACE_FAILURE;
        failures.keep(&handle(1, u32::MAX), Status::Io, later);
        assert_eq!(failures.of(&handle(1, u32::MAX), later), Err(Status::Io));
        assert_eq!(failures.of(&handle(1, 0), later), Ok(()));
    }
}
