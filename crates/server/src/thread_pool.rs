use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::{SPARE_IDLE_SECONDS, SPARES_KEPT};

/// The threads that run event loops. One that leaves its event loop to sleep is a spare one
/// afterwards; there are as many as there are event loops and sleeping calls, and a few.
pub(crate) struct ThreadPool<T> {
    state: Mutex<State<T>>,
    called: Condvar,
    ended: Condvar,
    /// Starts a thread that calls [`ThreadPool::next`] until there is none.
    spawn_worker: Box<dyn Fn() -> std::io::Result<()> + Send + Sync>,
    threads_max: usize,
}

struct State<T> {
    /// Event loops that wait for a thread.
    waiting: Vec<T>,
    threads: usize,
    idle: usize,
    /// Event loops that have not ended.
    event_loops: usize,
}

impl<T> ThreadPool<T> {
    pub(crate) fn new(
        event_loops: usize,
        threads_max: usize,
        spawn_worker: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let state = State { waiting: Vec::new(), threads: 0, idle: 0, event_loops };
        let threads_max = threads_max.max(event_loops);
        Self {
            state: Mutex::new(state),
            called: Condvar::new(),
            ended: Condvar::new(),
            spawn_worker: Box::new(spawn_worker),
            threads_max,
        }
    }

    /// Starts a thread on the event loop; returns the loop if all threads are busy and no more are
    /// allowed.
    pub(crate) fn run(&self, event_loop: T) -> Result<(), T> {
        let mut state = self.state();
        if state.idle <= state.waiting.len() {
            if state.threads >= self.threads_max || (self.spawn_worker)().is_err() {
                return Err(event_loop);
            }
            state.threads += 1;
            state.idle += 1;
        }
        state.waiting.push(event_loop);
        drop(state);
        self.called.notify_one();
        Ok(())
    }

    /// For a thread of the thread pool: the event loop to run next; `None` if it is not needed any
    /// more.
    pub(crate) fn next(&self) -> Option<T> {
        let mut state = self.state();
        let mut surplus = false;
        loop {
            if let Some(event_loop) = state.waiting.pop() {
                state.idle -= 1;
                return Some(event_loop);
            }
            if surplus || state.event_loops == 0 {
                state.idle -= 1;
                state.threads -= 1;
                return None;
            }
            let patience = Duration::from_secs(SPARE_IDLE_SECONDS);
            let (woken, timeout) =
                self.called.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
            surplus = timeout.timed_out() && woken.idle > SPARES_KEPT;
            state = woken;
        }
    }

    /// For a thread that has no event loop any more and will ask for another.
    pub(crate) fn is_free(&self) {
        self.state().idle += 1;
    }

    /// Notes the end of an event loop.
    pub(crate) fn event_loop_ended(&self) {
        self.state().event_loops -= 1;
        self.called.notify_all();
        self.ended.notify_all();
    }

    /// Waits until all event loops have ended; `false` if that took longer than `patience`.
    pub(crate) fn wait_for_end(&self, patience: Duration) -> bool {
        let state = self.state();
        let (state, _) = self
            .ended
            .wait_timeout_while(state, patience, |state| state.event_loops > 0)
            .unwrap_or_else(PoisonError::into_inner);
        state.event_loops == 0
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.state().threads
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
