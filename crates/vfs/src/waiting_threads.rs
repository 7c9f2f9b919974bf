use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};

use crate::{Interrupt, Result, Status};

/// Threads that wait for a change of a state of which this is a part. Unlike those that wait for a
/// lock, they can be interrupted ([`Interrupt`]).
#[derive(Debug, Default)]
pub struct WaitingThreads(Vec<Thread>);

impl WaitingThreads {
    /// Waits until `attempt` returns a value; it is called at once, and again after each
    /// [`WaitingThreads::wake`]. `of` returns the waiting threads of the state.
    ///
    /// # Errors
    /// [`Status::Interrupted`].
    pub fn wait<S, T>(
        state: &Mutex<S>,
        of: impl Fn(&mut S) -> &mut Self,
        mut attempt: impl FnMut(&mut S) -> Option<T>,
    ) -> Result<T> {
        loop {
            let mut locked = state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(done) = attempt(&mut locked) {
                return Ok(done);
            }
            of(&mut locked).0.push(thread::current());
            drop(locked);
            if Interrupt::is_raised() {
                return Err(Status::Interrupted);
            }
            thread::park();
        }
    }

    /// Has all of them look at the state again.
    pub fn wake(&mut self) {
        self.0.drain(..).for_each(|thread| thread.unpark());
    }

    /// Returns whether no thread waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of threads that wait. One that was interrupted counts until the next
    /// [`WaitingThreads::wake`].
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }
}
