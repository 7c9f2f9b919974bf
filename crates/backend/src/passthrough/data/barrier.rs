use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use comity_vfs::Result;

/// Counts the changes of one object and those that are on stable storage; concurrent callers share
/// a barrier.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    /// Number of changes that have finished.
    changes: AtomicU64,
    /// True if attributes are among the changes that are not yet stable.
    attributes: AtomicBool,
    /// True if data was written since the last barrier began.
    written: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Number of changes known to be stable. None at first: an earlier node of the object may have
    /// made changes.
    stable: Option<u64>,
    running: bool,
}

/// The extent of a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Data and the metadata needed to find it.
    Data,
    /// Also all attributes.
    All,
}

impl Barrier {
    /// Counts a finished change of data or entries.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of finished changes.
    pub(crate) fn count(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Counts a finished change of attributes.
    pub(crate) fn changed_attributes(&self) {
        self.attributes.store(true, Ordering::Release);
        self.changed();
    }

    /// Counts a finished write of a file's data.
    pub(crate) fn written(&self) {
        self.changed();
        if !self.written.load(Ordering::Relaxed) {
            self.written.store(true, Ordering::Release);
        }
    }

    /// Returns whether data was written that no barrier has covered.
    pub(crate) fn is_written(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }

    /// Notes that all changes so far count as stable: the object is new and its directory's barrier
    /// covers it.
    pub(crate) fn is_covered(&self) {
        self.lock().stable = Some(self.changes.load(Ordering::Acquire));
    }

    /// Returns when all changes that finished before the call are stable. Calls that wait while
    /// `sync` runs for another one share the next run. `sync` must remember its own failures,
    /// because it is called again for each waiting call.
    ///
    /// # Errors
    /// The error of `sync`.
    pub(crate) fn wait(&self, sync: impl Fn(Extent) -> Result<()>) -> Result<()> {
        let wanted = self.changes.load(Ordering::Acquire);
        let mut state = self.lock();
        loop {
            if state.stable.is_some_and(|stable| stable >= wanted) {
                return Ok(());
            }
            if state.running {
                state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.running = true;
            drop(state);
            self.run(&sync)?;
            state = self.lock();
        }
    }

    fn run(&self, sync: &impl Fn(Extent) -> Result<()>) -> Result<()> {
        let ended = RunGuard(self);
        let covered = self.changes.load(Ordering::Acquire);
        let attributes = self.attributes.swap(false, Ordering::AcqRel);
        // A write that began while the barrier ran may not be covered.
        self.written.store(false, Ordering::Release);
        let outcome = sync(if attributes { Extent::All } else { Extent::Data });
        if outcome.is_ok() {
            let mut state = self.lock();
            state.stable = Some(state.stable.map_or(covered, |old| old.max(covered)));
        } else if attributes {
            self.attributes.store(true, Ordering::Release);
        }
        drop(ended);
        outcome
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the other callers even if the barrier panics.
struct RunGuard<'a>(&'a Barrier);

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().running = false;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use comity_vfs::Status;

    use super::*;

    #[test]
    fn a_second_commit_without_changes_costs_nothing() {
        let (barrier, runs) = (Barrier::default(), AtomicUsize::new(0));
        let sync = |_| {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        barrier.changed();
        barrier.wait(sync).unwrap();
        barrier.wait(sync).unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        barrier.changed();
        barrier.wait(sync).unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_change_finished_while_a_barrier_runs_is_not_covered_by_it() {
        let (barrier, runs) = (Barrier::default(), AtomicUsize::new(0));
        let sync = |_| {
            if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                barrier.changed();
            }
            Ok(())
        };
        barrier.wait(sync).unwrap();
        barrier.wait(sync).unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_failed_barrier_covers_nothing() {
        let (barrier, runs) = (Barrier::default(), AtomicUsize::new(0));
        barrier.changed_attributes();
        assert_eq!(barrier.wait(|_| Err(Status::Io)), Err(Status::Io));
        let sync = |extent| {
            assert_eq!(extent, Extent::All);
            runs.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        barrier.wait(sync).unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn written_data_is_known_until_a_barrier() {
        let barrier = Barrier::default();
        barrier.changed_attributes();
        assert!(!barrier.is_written());
        barrier.written();
        assert!(barrier.is_written());
        barrier.wait(|_| Ok(())).unwrap();
        assert!(!barrier.is_written());
        let while_it_runs = |_| {
            barrier.written();
            Ok(())
        };
        barrier.changed();
        barrier.wait(while_it_runs).unwrap();
        assert!(barrier.is_written());
    }

    #[test]
    fn attributes_ask_for_the_whole_barrier_once() {
        let (barrier, whole) = (Barrier::default(), AtomicUsize::new(0));
        let sync = |extent| {
            whole.fetch_add(usize::from(extent == Extent::All), Ordering::SeqCst);
            Ok(())
        };
        barrier.changed_attributes();
        barrier.wait(sync).unwrap();
        barrier.changed();
        barrier.wait(sync).unwrap();
        assert_eq!(whole.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn many_that_wait_share_one_barrier() {
        let (barrier, runs) = (Barrier::default(), AtomicUsize::new(0));
        let sync = |_| {
            runs.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(50));
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    barrier.changed();
                    barrier.wait(sync).unwrap();
                });
            }
        });
        assert!(runs.load(Ordering::SeqCst) <= 8, "{runs:?} barriers for 16 callers");
    }
}
