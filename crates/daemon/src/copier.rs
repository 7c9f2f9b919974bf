//! Asynchronous copies: a queue, and threads that copy one piece of each in turn, so that no copy
//! waits for the end of another, or for a delay of another.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result};
use comity_nfs4::{Copying, Progress};
use comity_state::Origin;

use crate::copy_queue::{CopyJob, CopyQueue, WaitingCopy};
use crate::limits::{COPIERS, COPY_PAUSE_MAX};

impl CopyJob for Copying {
    fn origin(&self) -> Origin {
        Self::origin(self).network()
    }

    fn go_on(&mut self) -> Progress {
        Self::go_on(self)
    }
}

/// A queue of copies, with the threads that execute them.
pub(crate) struct Copier<C = Copying> {
    queue: Mutex<CopyQueue<C>>,
    changed: Condvar,
}

impl<C> Default for Copier<C> {
    fn default() -> Self {
        Self { queue: Mutex::default(), changed: Condvar::new() }
    }
}

impl<C: CopyJob> Copier<C> {
    /// Adds a copy to the queue, or returns it if there are too many.
    ///
    /// # Errors
    /// The copy.
    pub(crate) fn take(&self, copy: Box<C>) -> std::result::Result<(), Box<C>> {
        self.queue().add(copy)?;
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
        self.queue().stop();
        self.changed.notify_all();
    }

    /// Does one piece of the next copy; returns false after [`Copier::stop`].
    fn turn(&self, told: &impl Fn()) -> bool {
        let Some(WaitingCopy { mut copy, pause, .. }) = self.next() else { return false };
        let origin = copy.origin();
        // If a panic drops the copy, it ends as failed and this thread continues.
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let progress = copy.go_on();
            (progress, copy)
        }));
        let again = match made {
            Ok((Progress::More, copy)) => Some(WaitingCopy::ready(copy)),
            Ok((Progress::Later, copy)) => {
                let until = Instant::now().checked_add(pause);
                Some(WaitingCopy { copy, pause: (pause * 2).min(COPY_PAUSE_MAX), until })
            }
            Ok((Progress::Over, _)) | Err(_) => None,
        };
        if again.is_none() {
            told();
        }
        self.done(origin, again);
        true
    }

    /// Ends the piece of a copy of this origin; a copy that has not ended waits again.
    fn done(&self, origin: Origin, again: Option<WaitingCopy<C>>) {
        let goes_on = again.is_some();
        self.queue().give_back(origin, again);
        if goes_on {
            self.changed.notify_one();
        }
    }

    /// Waits for the next copy that is ready; `None` after [`Copier::stop`].
    fn next(&self) -> Option<WaitingCopy<C>> {
        let mut queue = self.queue();
        while !queue.is_stopped() {
            let now = Instant::now();
            if let Some(next) = queue.take_ready(now) {
                return Some(next);
            }
            let end = queue.next_end_of_pause();
            queue = match end.map(|end| end.saturating_duration_since(now)) {
                Some(wait) => self
                    .changed
                    .wait_timeout(queue, wait)
                    .map_or_else(|poisoned| poisoned.into_inner().0, |(queue, _)| queue),
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
        None
    }

    fn queue(&self) -> MutexGuard<'_, CopyQueue<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// A copy that records its pieces and calls a function for each.
    struct Copy {
        name: char,
        origin: Origin,
        turns: Box<dyn FnMut() -> Progress + Send>,
        noted: Arc<Mutex<String>>,
    }

    impl CopyJob for Copy {
        fn origin(&self) -> Origin {
            self.origin
        }

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
        /// Adds a copy of the origin that its name stands for.
        fn take(&self, name: char, turns: impl FnMut() -> Progress + Send + 'static) -> bool {
            let (noted, origin) = (Arc::clone(&self.noted), Origin::from_bytes([name as u8; 16]));
            self.copier.take(Box::new(Copy { name, origin, turns: Box::new(turns), noted })).is_ok()
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
    fn origins_take_turns_whatever_number_of_copies_each_has() {
        let site = ObservedCopier::default();
        (0..9).for_each(|_| assert!(site.take('a', pieces(2))));
        assert!(site.take('b', pieces(3)));
        assert_eq!(site.turns(8), "abababaa");
    }

    #[test]
    fn an_origin_leaves_room_for_the_copies_of_others() {
        let site = ObservedCopier::default();
        let taken = |name| (0..).take_while(|_| site.take(name, pieces(1))).count();
        assert_eq!(['a', 'b', 'c'].map(taken), [512, 256, 128]);
        assert!(site.take('d', pieces(1)));
    }

    #[test]
    fn the_room_of_an_origin_counts_copies_in_the_queue_and_under_way() {
        let site = ObservedCopier::default();
        while site.take('a', pieces(1)) {}
        let in_hand = site.copier.next().unwrap();
        assert!(!site.take('a', pieces(1)));
        site.copier.done(in_hand.copy.origin(), None);
        assert!(site.take('a', pieces(1)), "one copy has ended");
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
