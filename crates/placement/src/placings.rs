//! The placings of files that are under way.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All placings, each with a number that rises.
#[derive(Default)]
pub(crate) struct Placings {
    state: Mutex<PlacingNumbers>,
    ended: Condvar,
}

#[derive(Default)]
struct PlacingNumbers {
    present: BTreeSet<u64>,
    next: u64,
}

/// A placing, which lasts while this lives.
pub(crate) struct Placing<'p> {
    placings: &'p Placings,
    number: u64,
}

/// The placings that were under way at one time.
pub(crate) struct PresentPlacings<'p> {
    placings: &'p Placings,
    /// The number of the first later one.
    next: u64,
}

impl Placings {
    pub(crate) fn begin(&self) -> Placing<'_> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.present.insert(number);
        Placing { placings: self, number }
    }

    /// Returns the placings that are under way now.
    pub(crate) fn present(&self) -> PresentPlacings<'_> {
        PresentPlacings { placings: self, next: self.lock().next }
    }

    fn lock(&self) -> MutexGuard<'_, PlacingNumbers> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PresentPlacings<'_> {
    /// Waits until they have ended; returns false if one has not after the longest time.
    pub(crate) fn await_end(&self, longest: Duration) -> bool {
        let Self { placings, next } = *self;
        let is_present = |state: &mut PlacingNumbers| state.present.range(..next).next().is_some();
        let waited = placings.ended.wait_timeout_while(placings.lock(), longest, is_present);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for Placing<'_> {
    fn drop(&mut self) {
        self.placings.lock().present.remove(&self.number);
        self.placings.ended.notify_all();
    }
}
