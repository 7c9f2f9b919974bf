//! Copies that go on after they were answered: a queue, and threads that make a piece of each in
//! turn, so that no copy waits for the end of another.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use comity_nfs4::{Copying, Progress};

use crate::limits::{COPIERS, COPIES_MAX};

/// How long a copy that cannot go on at the moment is left alone: a recall takes as long as an
/// answer of another client does.
const PAUSE: Duration = Duration::from_millis(20);

/// Who makes copies.
#[derive(Default)]
pub(crate) struct Copier {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    copies: VecDeque<Box<Copying>>,
    /// Those that are in somebody's hands.
    taken: usize,
    stopped: bool,
}

impl Copier {
    /// Takes a copy, or gives it back if there are too many.
    ///
    /// # Errors
    /// The copy.
    pub(crate) fn take(&self, copying: Box<Copying>) -> std::result::Result<(), Box<Copying>> {
        let mut queue = self.queue();
        if queue.stopped || queue.copies.len() + queue.taken >= COPIES_MAX {
            return Err(copying);
        }
        queue.copies.push_back(copying);
        self.changed.notify_one();
        Ok(())
    }

    /// Begins to copy; `told` is called after each copy's end.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(crate) fn begin(
        self: &Arc<Self>,
        told: impl Fn() + Clone + Send + 'static,
    ) -> Result<Vec<JoinHandle<()>>> {
        let work = || {
            let (this, told) = (Arc::clone(self), told.clone());
            let work = move || while this.turn(&told) {};
            let thread = thread::Builder::new().name("copier".into()).spawn(work);
            thread.context("cannot start the threads that copy")
        };
        (0..COPIERS).map(|_| work()).collect()
    }

    /// No more pieces are copied. Clients find the copies gone, and ask anew.
    pub(crate) fn stop(&self) {
        let mut queue = self.queue();
        queue.stopped = true;
        self.changed.notify_all();
    }

    /// One piece of the copy whose turn it is; `false` when there is to be none any more.
    fn turn(&self, told: &impl Fn()) -> bool {
        let Some(mut copying) = self.next() else { return false };
        // Dropped by a panic it ends as failed, and this thread goes on.
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let progress = copying.go_on();
            (progress, copying)
        }));
        let goes_on = match made {
            Ok((Progress::More, copying)) => Some(copying),
            Ok((Progress::Later, copying)) => {
                thread::sleep(PAUSE);
                Some(copying)
            }
            Ok((Progress::Over, _)) | Err(_) => None,
        };
        if goes_on.is_none() {
            told();
        }
        let mut queue = self.queue();
        queue.taken -= 1;
        if let Some(copying) = goes_on {
            queue.copies.push_back(copying);
            self.changed.notify_one();
        }
        true
    }

    fn next(&self) -> Option<Box<Copying>> {
        let idle = |queue: &mut Queue| queue.copies.is_empty() && !queue.stopped;
        let queue = self.changed.wait_while(self.queue(), idle);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        if queue.stopped {
            return None;
        }
        queue.taken += 1;
        queue.copies.pop_front()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
