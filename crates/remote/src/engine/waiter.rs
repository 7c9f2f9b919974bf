use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};

use comity_vfs::Interrupt;

/// A thread that waits for one value.
#[derive(Debug)]
pub(super) struct Waiter<T> {
    thread: Thread,
    value: Mutex<Option<T>>,
}

impl<T> Waiter<T> {
    /// Makes a waiter for the calling thread.
    pub(super) fn here() -> Self {
        Self { thread: thread::current(), value: Mutex::new(None) }
    }

    /// Sets the value, and wakes the thread.
    pub(super) fn give(&self, value: T) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        self.thread.unpark();
    }

    /// Takes the value, if it was set.
    pub(super) fn take(&self) -> Option<T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits for the value; `None` if the thread was interrupted before it came.
    pub(super) fn wait(&self) -> Option<T> {
        loop {
            if let Some(value) = self.take() {
                return Some(value);
            }
            if Interrupt::is_raised() {
                return None;
            }
            thread::park();
        }
    }
}
