use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::{SPARE_IDLE_SECONDS, SPARES_KEPT};

/// The threads that run event loops. A thread that sleeps hands its event loop to another one, and
/// is a spare thread afterwards. There are as many threads as event loops and sleeping calls, and a
/// few more.
pub(crate) struct ThreadPool<T> {
    state: Mutex<State<T>>,
    called: Condvar,
    ended: Condvar,
    /// Starts a thread that calls [`ThreadPool::next`] until that returns `None`.
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

    /// Returns the event loop that a thread of the pool must run next; `None` if the thread is not
    /// needed any more.
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

    /// Notes that a thread has no event loop any more and will ask for another.
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    /// A pool whose threads are simulated by the test, and the number of started threads.
    fn pool(event_loops: usize, threads_max: usize) -> (ThreadPool<u32>, Arc<AtomicUsize>) {
        let started = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&started);
        let spawn = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        (ThreadPool::new(event_loops, threads_max, spawn), started)
    }

    #[test]
    fn a_thread_is_started_only_if_none_waits_for_an_event_loop() {
        let (pool, started) = pool(2, 9);
        assert_eq!((pool.run(1), pool.run(2)), (Ok(()), Ok(())));
        assert_eq!((started.load(Ordering::SeqCst), pool.threads()), (2, 2));
        let mut taken = [pool.next(), pool.next()];
        taken.sort_unstable();
        assert_eq!(taken, [Some(1), Some(2)]);
        pool.is_free();
        assert_eq!(pool.run(3), Ok(()));
        assert_eq!(pool.threads(), 2, "the thread that was free runs it");
        assert_eq!(pool.next(), Some(3));
    }

    #[test]
    fn an_event_loop_comes_back_if_all_threads_are_busy_and_no_more_are_allowed() {
        let (pool, _) = pool(1, 2);
        for event_loop in 1..3 {
            assert_eq!(pool.run(event_loop), Ok(()));
            assert_eq!(pool.next(), Some(event_loop));
        }
        assert_eq!(pool.run(3), Err(3));
        pool.is_free();
        assert_eq!(pool.run(3), Ok(()));
        assert_eq!(pool.run(4), Err(4), "the free thread has an event loop");
    }

    #[test]
    fn each_event_loop_has_a_thread_however_few_are_allowed() {
        let (pool, started) = pool(3, 1);
        assert!((0..3).all(|event_loop| pool.run(event_loop).is_ok()));
        assert_eq!(pool.run(3), Err(3));
        assert_eq!(started.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_thread_that_the_system_refuses_is_not_counted() {
        let pool = ThreadPool::new(1, 9, || Err(io::ErrorKind::WouldBlock.into()));
        assert_eq!(pool.run(7), Err(7));
        assert_eq!(pool.threads(), 0);
    }

    #[test]
    fn threads_end_after_the_last_event_loop_and_not_before_its_work_is_taken() {
        let (pool, _) = pool(2, 9);
        assert_eq!((pool.run(1), pool.run(2)), (Ok(()), Ok(())));
        pool.event_loop_ended();
        assert!(!pool.wait_for_end(AT_ONCE));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.wait_for_end(Duration::from_secs(10)));
            pool.event_loop_ended();
            assert!(waiting.join().unwrap());
        });
        assert_eq!([pool.next(), pool.next()].map(|it| it.is_some()), [true, true]);
        pool.is_free();
        assert_eq!(pool.next(), None);
        assert_eq!(pool.threads(), 1, "the thread that had to end has left");
    }
}
