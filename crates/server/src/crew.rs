use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::desk::Desk;
use crate::limits::{SPARE_IDLE_SECONDS, SPARES_KEPT};

/// The threads that run desks. One that leaves its desk to sleep is a spare one afterwards; there
/// are as many as there are desks and sleeping calls, and a few.
pub(crate) struct Crew<V> {
    state: Mutex<State<V>>,
    called: Condvar,
    ended: Condvar,
    /// Starts a thread that calls [`Crew::next_desk`] until there is none.
    hire: Box<dyn Fn() -> std::io::Result<()> + Send + Sync>,
    threads_max: usize,
}

struct State<V> {
    /// Desks that wait for a thread.
    #[expect(clippy::vec_box, reason = "a desk goes from thread to thread as the box it is")]
    waiting: Vec<Box<Desk<V>>>,
    threads: usize,
    idle: usize,
    /// Desks that have not ended.
    desks: usize,
}

impl<V> Crew<V> {
    pub(crate) fn new(
        desks: usize,
        threads_max: usize,
        hire: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let state = State { waiting: Vec::new(), threads: 0, idle: 0, desks };
        let threads_max = threads_max.max(desks);
        Self {
            state: Mutex::new(state),
            called: Condvar::new(),
            ended: Condvar::new(),
            hire: Box::new(hire),
            threads_max,
        }
    }

    /// Has somebody run the desk; gives it back if all threads are busy and no more are allowed.
    pub(crate) fn run(&self, desk: Box<Desk<V>>) -> Result<(), Box<Desk<V>>> {
        let mut state = self.state();
        if state.idle <= state.waiting.len() {
            if state.threads >= self.threads_max || (self.hire)().is_err() {
                return Err(desk);
            }
            state.threads += 1;
            state.idle += 1;
        }
        state.waiting.push(desk);
        drop(state);
        self.called.notify_one();
        Ok(())
    }

    /// For a thread of the crew: the desk to run next; `None` if it is not needed any more.
    pub(crate) fn next_desk(&self) -> Option<Box<Desk<V>>> {
        let mut state = self.state();
        let mut surplus = false;
        loop {
            if let Some(desk) = state.waiting.pop() {
                state.idle -= 1;
                return Some(desk);
            }
            if surplus || state.desks == 0 {
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

    /// For a thread that has no desk any more and will ask for another.
    pub(crate) fn is_free(&self) {
        self.state().idle += 1;
    }

    /// A desk has ended.
    pub(crate) fn desk_ended(&self) {
        self.state().desks -= 1;
        self.called.notify_all();
        self.ended.notify_all();
    }

    /// Waits until all desks have ended; `false` if that took longer than `patience`.
    pub(crate) fn wait_for_end(&self, patience: Duration) -> bool {
        let state = self.state();
        let (state, _) = self
            .ended
            .wait_timeout_while(state, patience, |state| state.desks > 0)
            .unwrap_or_else(PoisonError::into_inner);
        state.desks == 0
    }

    /// Threads that there are.
    pub(crate) fn threads(&self) -> usize {
        self.state().threads
    }

    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
