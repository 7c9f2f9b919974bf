use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Hook, Verb};
use crate::limits::EVENTS_MAX;
use crate::{Handle, Result, Status};

/// A verb that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The verb.
    pub verb: Verb,
    /// The object it was about; of two, the first (of a copy, the target).
    pub node: Handle,
    /// The error, if it failed.
    pub failure: Option<Status>,
}

/// Notes which verbs have ended, in their order: whoever has an answer in hand can see what was
/// done for it.
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
