//! A lock whose waiters can be interrupted.

use std::mem::replace;
use std::sync::{Mutex, PoisonError};

use comity_vfs::{Result, WaitingThreads};

/// A lock that one thread at a time holds, possibly during calls to a server that never answers:
/// the programs that wait for it must still be able to end.
#[derive(Debug, Default)]
pub(crate) struct FileTurn(Mutex<FileTurnState>);

#[derive(Debug, Default)]
struct FileTurnState {
    is_taken: bool,
    waiting: WaitingThreads,
}

/// The time in which a thread holds a turn; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct FileTurnGuard<'a>(&'a FileTurn);

impl FileTurn {
    /// Waits for the turn and takes it.
    ///
    /// # Errors
    /// [`comity_vfs::Status::Interrupted`].
    pub(crate) fn take(&self) -> Result<FileTurnGuard<'_>> {
        WaitingThreads::wait(
            &self.0,
            |state| &mut state.waiting,
            |state| (!replace(&mut state.is_taken, true)).then(|| FileTurnGuard(self)),
        )
    }

    /// Returns the number of threads that wait for the turn.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.len()
    }
}

impl Drop for FileTurnGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_taken = false;
        state.waiting.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use comity_vfs::{Interrupt, Status};

    use super::*;

    #[test]
    fn a_thread_that_waits_for_a_turn_can_be_interrupted() {
        let turn = FileTurn::default();
        let held = turn.take().unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let scope = Interrupt::begin();
                sender.send(scope.interrupt()).unwrap();
                turn.take().map(drop)
            });
            receiver.recv().unwrap().raise();
            assert_eq!(waiting.join().unwrap(), Err(Status::Interrupted));
        });
        drop(held);
        assert!(turn.take().is_ok());
    }

    #[test]
    fn one_thread_at_a_time_has_the_turn_and_each_gets_it() {
        let (turn, inside) = (FileTurn::default(), Mutex::new(()));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turn.take().unwrap();
                        let _inside = inside.try_lock().unwrap();
                        thread::yield_now();
                    }
                });
            }
        });
    }
}
