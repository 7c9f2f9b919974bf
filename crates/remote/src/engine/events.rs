use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::limits::EVENTS_MAX;
use crate::machine::StateEvent;

/// Events that nobody has asked for yet.
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
    /// Puts an event in. If nobody asks, the oldest give way: a delegation that was recalled is
    /// given back by the client itself in the end.
    pub(super) fn push(&self, event: StateEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.events.len() >= EVENTS_MAX {
            state.events.pop_front();
        }
        state.events.push_back(event);
        self.came.notify_one();
    }

    /// Takes the next event, if one comes while `patience` lasts.
    pub(super) fn next(&self, patience: Duration) -> Option<StateEvent> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = |state: &mut EventState| state.events.is_empty() && !state.is_over;
        let waited = self.came.wait_timeout_while(state, patience, is_empty);
        waited.unwrap_or_else(PoisonError::into_inner).0.events.pop_front()
    }

    /// No more events come.
    pub(super) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.came.notify_all();
    }
}
