//! What waits for hosts, done aside where nobody else waits: by a bounded number of threads, which
//! come when there is something to do and go when there is nothing more.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::limits::ERRAND_THREADS_MAX;

type Work = Box<dyn FnOnce() + Send>;

/// Who does it. Each piece of work ends within seconds; how many wait is bounded by what they are
/// about: one of a client, one of a lock that is granted.
#[derive(Clone, Default)]
pub(crate) struct Errands(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    threads: usize,
}

impl Errands {
    /// Does something, sooner or later.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        let mut queue = self.queue();
        queue.waiting.push_back(Box::new(work));
        if queue.threads == ERRAND_THREADS_MAX {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let this = self.clone();
        let spawned = thread::Builder::new().name("errand".into()).spawn(move || this.work());
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for what waits for a host");
            self.queue().threads -= 1;
        }
    }

    fn work(&self) {
        while let Some(work) = self.next() {
            // The log has it; the others still have this thread.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }

    fn next(&self) -> Option<Work> {
        let mut queue = self.queue();
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.threads -= 1;
        }
        next
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_is_done_and_by_no_more_threads_than_allowed() {
        let (errands, (done, dones)) = (Errands::default(), channel());
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let count = 3 * ERRAND_THREADS_MAX;
        for number in 0..count {
            let (done, gate) = (done.clone(), Arc::clone(&gate));
            errands.run(move || {
                // Nobody gets through before the gate is open.
                let _ = gate.lock().map(|gate| gate.recv());
                let _ = done.send(number);
            });
        }
        assert_eq!(errands.queue().threads, ERRAND_THREADS_MAX);
        drop(open);
        let patience = Duration::from_secs(20);
        let mut all: Vec<_> = (0..count).map(|_| dones.recv_timeout(patience).unwrap()).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..count));
    }
}
