//! A bound on the threads that sleep for one client: it may have as many as are left for others.
//! One client therefore gets half of them, each of two a third, and one thread is always left for a
//! client that has none (Choudhury and Hahne: dynamic queue length thresholds, IEEE/ACM ToN 1998).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use comity_rpc::Backchannel;

/// The threads that sleep for the calls of one client, and its connections that wait because it has
/// as many threads as it may.
pub(crate) struct Sleepers {
    own: AtomicUsize,
    /// The threads that sleep for all clients together.
    all: Arc<AtomicUsize>,
    postponed: Mutex<Vec<Arc<Backchannel>>>,
}

impl Sleepers {
    /// Makes the count of a client's threads, which are also added to those of all.
    pub(crate) fn new(all: Arc<AtomicUsize>) -> Self {
        Self { own: AtomicUsize::new(0), all, postponed: Mutex::default() }
    }

    /// Returns whether a connection has to wait because its client has its share of the `threads`
    /// that may sleep; its back channel is woken when one of the client's threads is free again.
    pub(crate) fn postpone(&self, line: &Arc<Backchannel>, threads: usize) -> bool {
        if self.may_sleep(threads) {
            return false;
        }
        let mut postponed = self.postponed.lock().unwrap_or_else(PoisonError::into_inner);
        // The client's last call may have ended meanwhile; nobody would wake the connection.
        if self.may_sleep(threads) {
            return false;
        }
        if !postponed.iter().any(|other| other.id() == line.id()) {
            postponed.push(Arc::clone(line));
        }
        true
    }

    /// A client without sleeping threads may always go on: no end of a call would wake its
    /// connections.
    fn may_sleep(&self, threads: usize) -> bool {
        let left = threads.saturating_sub(self.all.load(Ordering::SeqCst));
        let own = self.own.load(Ordering::SeqCst);
        own == 0 || own < left
    }

    /// Notes that a thread sleeps for a call of the client.
    pub(crate) fn begin(&self) {
        self.all.fetch_add(1, Ordering::SeqCst);
        self.own.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that the call is done, and wakes all connections that wait, because not every call
    /// sleeps.
    pub(crate) fn end(&self) {
        self.all.fetch_sub(1, Ordering::SeqCst);
        self.own.fetch_sub(1, Ordering::SeqCst);
        let mut postponed = self.postponed.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut *postponed);
        drop(postponed);
        lines.iter().for_each(|line| line.wake());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: usize = 12;

    fn line() -> (Arc<Backchannel>, Arc<AtomicUsize>) {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let line = Backchannel::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        (Arc::new(line), woken)
    }

    fn clients(count: usize) -> Vec<Sleepers> {
        let all = Arc::new(AtomicUsize::new(0));
        (0..count).map(|_| Sleepers::new(Arc::clone(&all))).collect()
    }

    /// Lets each client in turn block as many threads as it may. Returns the number of threads of
    /// each client.
    fn fill(clients: &[Sleepers]) -> Vec<usize> {
        let (line, _) = line();
        for _ in 0..THREADS {
            for client in clients {
                if !client.postpone(&line, THREADS) {
                    client.begin();
                }
            }
        }
        clients.iter().map(|client| client.own.load(Ordering::SeqCst)).collect()
    }

    #[test]
    fn greedy_clients_leave_as_much_to_the_next() {
        assert_eq!(fill(&clients(1)), [6]);
        assert_eq!(fill(&clients(2)), [4, 4]);
        assert_eq!(fill(&clients(3)), [3, 3, 3]);
        for count in 1..THREADS {
            let taken: usize = fill(&clients(count)).iter().sum();
            assert!(taken < THREADS, "one thread is free with {count} clients");
        }
    }

    #[test]
    fn a_client_with_no_sleeping_thread_goes_on_even_if_all_are_taken() {
        let clients = clients(THREADS + 1);
        assert_eq!(fill(&clients), [1; THREADS + 1]);
    }

    #[test]
    fn postponed_connections_are_woken_once_by_the_end_of_a_call_of_their_client() {
        let [greedy, other] = <[Sleepers; 2]>::try_from(clients(2)).ok().unwrap();
        let ((first, first_woken), (second, second_woken)) = (line(), line());
        let woken = || [&first_woken, &second_woken].map(|count| count.load(Ordering::SeqCst));
        (0..THREADS / 2).for_each(|_| greedy.begin());
        for line in [&first, &second, &first] {
            assert!(greedy.postpone(line, THREADS));
        }
        other.begin();
        other.end();
        assert_eq!(woken(), [0, 0], "calls of another client wake nothing");
        greedy.end();
        assert_eq!(woken(), [1, 1]);
        assert!(!greedy.postpone(&first, THREADS));
        greedy.end();
        assert_eq!(woken(), [1, 1], "no connection waits any more");
    }
}
