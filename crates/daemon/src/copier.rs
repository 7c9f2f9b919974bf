//! Asynchronous copies: a queue, and threads that copy one piece of each in turn, so that no copy
//! waits for the end of another, or for a delay of another.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use comity_nfs4::{Copying, Progress};

use crate::limits::{COPIERS, COPIES_MAX, COPY_PAUSE_MAX, COPY_PAUSE_MIN};

/// A job that is done in pieces.
pub(crate) trait CopyJob: Send + 'static {
    /// Does one piece.
    fn go_on(&mut self) -> Progress;
}

impl CopyJob for Copying {
    fn go_on(&mut self) -> Progress {
        Self::go_on(self)
    }
}

/// A queue of copies, with the threads that execute them.
pub(crate) struct Copier<C = Copying> {
    queue: Mutex<Queue<C>>,
    changed: Condvar,
}

struct Queue<C> {
    copies: VecDeque<WaitingCopy<C>>,
    /// Number of copies whose pieces threads are copying now.
    taken: usize,
    stopped: bool,
}

/// A copy in the queue.
struct WaitingCopy<C> {
    copy: Box<C>,
    /// The length of the next pause, if the copy cannot continue.
    pause: Duration,
    /// The end of the current pause.
    until: Option<Instant>,
}

impl<C> Default for Copier<C> {
    fn default() -> Self {
        let queue = Queue { copies: VecDeque::new(), taken: 0, stopped: false };
        Self { queue: Mutex::new(queue), changed: Condvar::new() }
    }
}

impl<C: CopyJob> Copier<C> {
    /// Adds a copy to the queue, or returns it if there are too many.
    ///
    /// # Errors
    /// The copy.
    pub(crate) fn take(&self, copy: Box<C>) -> std::result::Result<(), Box<C>> {
        let mut queue = self.queue();
        if queue.stopped || queue.copies.len() + queue.taken >= COPIES_MAX {
            return Err(copy);
        }
        queue.copies.push_back(WaitingCopy { copy, pause: COPY_PAUSE_MIN, until: None });
        self.changed.notify_one();
        Ok(())
    }

    /// Starts the threads; `told` is called after the end of each copy.
    ///
    /// # Errors
    /// A thread cannot be created.
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

    /// Stops copying. Clients will find that their copies no longer exist, and start them again.
    pub(crate) fn stop(&self) {
        let mut queue = self.queue();
        queue.stopped = true;
        self.changed.notify_all();
    }

    /// Does one piece of the next copy; returns false after [`Copier::stop`].
    fn turn(&self, told: &impl Fn()) -> bool {
        let Some(WaitingCopy { mut copy, pause, .. }) = self.next() else { return false };
        // If a panic drops the copy, it ends as failed and this thread continues.
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let progress = copy.go_on();
            (progress, copy)
        }));
        let goes_on = match made {
            Ok((Progress::More, copy)) => {
                Some(WaitingCopy { copy, pause: COPY_PAUSE_MIN, until: None })
            }
            Ok((Progress::Later, copy)) => {
                let until = Instant::now().checked_add(pause);
                Some(WaitingCopy { copy, pause: (pause * 2).min(COPY_PAUSE_MAX), until })
            }
            Ok((Progress::Over, _)) | Err(_) => None,
        };
        if goes_on.is_none() {
            told();
        }
        let mut queue = self.queue();
        queue.taken -= 1;
        if let Some(turn) = goes_on {
            queue.copies.push_back(turn);
            self.changed.notify_one();
        }
        true
    }

    /// Waits for the next copy that is ready; `None` after [`Copier::stop`].
    fn next(&self) -> Option<WaitingCopy<C>> {
        let mut queue = self.queue();
        while !queue.stopped {
            let now = Instant::now();
            if let Some(turn) = queue.take_ready(now) {
                return Some(turn);
            }
            let pauses = queue.copies.iter().filter_map(|turn| turn.until);
            let wait = pauses.min().map(|until| until.saturating_duration_since(now));
            queue = match wait {
                Some(wait) => self
                    .changed
                    .wait_timeout(queue, wait)
                    .map_or_else(|poisoned| poisoned.into_inner().0, |(queue, _)| queue),
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
        None
    }

    fn queue(&self) -> MutexGuard<'_, Queue<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Queue<C> {
    /// Removes and returns the first copy without a current pause.
    fn take_ready(&mut self, now: Instant) -> Option<WaitingCopy<C>> {
        let is_ready = |turn: &WaitingCopy<C>| turn.until.is_none_or(|until| until <= now);
        let turn = self.copies.iter().position(is_ready).and_then(|at| self.copies.remove(at))?;
        self.taken += 1;
        Some(turn)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A copy that records its pieces and calls a function for each.
    struct Copy {
        name: char,
        turns: Box<dyn FnMut() -> Progress + Send>,
        noted: Arc<Mutex<String>>,
    }

    impl CopyJob for Copy {
        fn go_on(&mut self) -> Progress {
            self.noted.lock().unwrap().push(self.name);
            (self.turns)()
        }
    }

    /// Returns a job of this many pieces.
    fn pieces(mut count: u32) -> impl FnMut() -> Progress + Send {
        move || {
            count -= 1;
            if count == 0 { Progress::Over } else { Progress::More }
        }
    }

    #[derive(Default)]
    struct ObservedCopier {
        copier: Copier<Copy>,
        noted: Arc<Mutex<String>>,
        told: AtomicUsize,
    }

    impl ObservedCopier {
        fn take(&self, name: char, turns: impl FnMut() -> Progress + Send + 'static) -> bool {
            let noted = Arc::clone(&self.noted);
            self.copier.take(Box::new(Copy { name, turns: Box::new(turns), noted })).is_ok()
        }

        /// Runs this many pieces; returns the record.
        fn turns(&self, count: usize) -> String {
            let told = || {
                self.told.fetch_add(1, Ordering::Relaxed);
            };
            (0..count).for_each(|_| assert!(self.copier.turn(&told)));
            std::mem::take(&mut self.noted.lock().unwrap())
        }

        fn told(&self) -> usize {
            self.told.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn copies_are_made_piece_by_piece_in_turn() {
        let site = ObservedCopier::default();
        assert!(site.take('a', pieces(3)) && site.take('b', pieces(2)));
        assert_eq!((site.turns(3).as_str(), site.told()), ("aba", 0));
        assert_eq!((site.turns(2).as_str(), site.told()), ("ba", 2));
    }

    #[test]
    fn a_copy_that_cannot_continue_delays_no_other_and_is_tried_again() {
        let site = ObservedCopier::default();
        assert!(site.take('a', || Progress::Later) && site.take('b', pieces(50)));
        let before = Instant::now();
        let noted = site.turns(51);
        assert!(noted.starts_with("ab"), "{noted}");
        assert!(before.elapsed() < Duration::from_secs(5), "no thread sleeps while there is work");
        let rest = site.turns(51 - noted.matches('b').count());
        assert!(rest.contains('a'), "{noted} {rest}");
    }

    #[test]
    fn the_limit_counts_copies_in_the_queue_and_under_way() {
        let site = ObservedCopier::default();
        for _ in 0..COPIES_MAX {
            assert!(site.take('a', pieces(2)));
        }
        assert!(!site.take('b', pieces(1)));
        let in_hand = site.copier.next().unwrap();
        assert!(!site.take('b', pieces(1)));
        drop(in_hand);
        site.turns(COPIES_MAX);
        assert!(site.take('b', pieces(1)), "one copy has ended");
    }

    #[test]
    fn a_copy_that_panics_ends_and_the_others_continue() {
        let site = ObservedCopier::default();
        assert!(site.take('a', || panic!("on purpose")) && site.take('b', pieces(1)));
        assert_eq!((site.turns(2).as_str(), site.told()), ("ab", 2));
    }

    #[test]
    fn nothing_is_copied_or_accepted_after_the_stop() {
        let site = ObservedCopier::default();
        assert!(site.take('a', pieces(1)));
        site.copier.stop();
        assert!(!site.copier.turn(&|| {}));
        assert!(!site.take('b', pieces(1)));
    }
}
