use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Time since the machine was booted, including sleep: a lease also runs out while a laptop sleeps.
pub(super) fn now() -> Duration {
    // Through the C library: rustix panics on a kernel whose vDSO lacks a function.
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// Wakes the timer thread.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct AlarmState {
    at: Option<Duration>,
    /// True if the thread must wake regardless of the time.
    is_wanted: bool,
}

impl Alarm {
    /// Sets the time, if it is earlier than the time already set.
    pub(super) fn set(&self, at: Option<Duration>) {
        let Some(at) = at else { return };
        let mut state = self.lock();
        if state.at.is_none_or(|set| at < set) {
            state.at = Some(at);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Wakes the timer thread now.
    pub(super) fn wake(&self) {
        self.lock().is_wanted = true;
        self.changed.notify_one();
    }

    /// Waits until the time that was set, or until [`Self::wake`] is called.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        loop {
            let left = state.at.map(|at| at.saturating_sub(now()));
            if std::mem::take(&mut state.is_wanted) || left == Some(Duration::ZERO) {
                state.at = None;
                return;
            }
            state = match left {
                // Look once a second: the condition variable's clock stops while the machine
                // sleeps.
                Some(left) => {
                    let left = left.min(Duration::from_secs(1));
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, AlarmState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
