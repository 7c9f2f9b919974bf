use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

/// Does `work` on each item, `jobs` at a time. The items are begun in their order; the results come
/// in another one. A panic of `work` goes on in the caller.
pub(crate) fn work_off<T: Send, R: Send>(
    jobs: usize,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let queue = Mutex::new(items.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        let worker = || std::iter::from_fn(next).map(&work).collect::<Vec<R>>();
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        let results =
            workers.into_iter().map(|it| it.join().unwrap_or_else(|it| resume_unwind(it)));
        results.flatten().collect()
    })
}
