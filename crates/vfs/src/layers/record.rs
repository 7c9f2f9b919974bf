use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Hook, Verb};
use crate::limits::EVENTS_MAX;
use crate::{Handle, Result, Status};

/// A completed call of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The verb.
    pub verb: Verb,
    /// Its object; the first one if there are two (the target of a copy).
    pub node: Handle,
    /// The error, if it failed.
    pub failure: Option<Status>,
}

/// Records the completed calls in their order, so that a test can see which calls were made for a
/// reply.
#[derive(Debug, Default)]
pub struct Recorder {
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    /// Takes the events since the last call: the first [`EVENTS_MAX`] of them.
    #[must_use]
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hook for Recorder {
    fn around<T>(&self, verb: Verb, node: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let outcome = work();
        let failure = outcome.as_ref().err().copied();
        let mut events = self.lock();
        if events.len() < EVENTS_MAX {
            events.push(Event { verb, node: *node, failure });
        }
        outcome
    }
}
