use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::limits::EVENTS_MAX;
use crate::machine::StateEvent;

/// Events that have not been polled yet.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    state: Mutex<EventState>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct EventState {
    events: VecDeque<StateEvent>,
    is_over: bool,
}

impl EventQueue {
    /// Adds an event. A full queue drops its oldest event: this is safe, because the client returns
    /// a recalled delegation itself in the end.
    pub(super) fn push(&self, event: StateEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.events.len() >= EVENTS_MAX {
            state.events.pop_front();
        }
        state.events.push_back(event);
        self.came.notify_one();
    }

    /// Takes the next event; waits for one for at most `patience`.
    pub(super) fn next(&self, patience: Duration) -> Option<StateEvent> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = |state: &mut EventState| state.events.is_empty() && !state.is_over;
        let waited = self.came.wait_timeout_while(state, patience, is_empty);
        waited.unwrap_or_else(PoisonError::into_inner).0.events.pop_front()
    }

    /// Ends the queue: waiting threads return.
    pub(super) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.came.notify_all();
    }
}
