//! Calls to other hosts that may block, run by a bounded number of threads, which are started when
//! there is work and end when there is none.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use comity_credential::network_of;

use crate::limits::{HOST_THREADS_MAX, THREADS_PER_HOST_MAX};

type Work = Box<dyn FnOnce() + Send>;

/// A queue of calls to other hosts. Each ends within seconds. There is at most one for each client,
/// one for each granted lock, and as many replies as `nlm_replies` allows.
#[derive(Clone, Default)]
pub(crate) struct HostQueue(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    /// The hosts and the work for them.
    waiting: VecDeque<(IpAddr, Work)>,
    threads: usize,
    /// Number of threads that are now blocked by each host. The addresses of a network that one
    /// host may use count as one.
    at_host: HashMap<IpAddr, usize>,
}

impl HostQueue {
    /// Runs work that may wait for `host`, now or later. Work for a host that does not answer does
    /// not delay work for other hosts.
    pub(crate) fn run(&self, host: IpAddr, work: impl FnOnce() + Send + 'static) {
        let mut queue = self.queue();
        queue.waiting.push_back((host, Box::new(work)));
        if queue.threads == HOST_THREADS_MAX || !queue.may_wait_for(host) {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let this = self.clone();
        let spawned = thread::Builder::new().name("host-queue".into()).spawn(move || this.work());
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for calls to other hosts");
            self.queue().threads -= 1;
        }
    }

    fn work(&self) {
        let mut done = None;
        while let Some((host, work)) = self.next(done) {
            // A panic is logged; the thread continues with other work.
            let _ = catch_unwind(AssertUnwindSafe(work));
            done = Some(host);
        }
    }

    fn next(&self, done: Option<IpAddr>) -> Option<(IpAddr, Work)> {
        let mut queue = self.queue();
        done.into_iter().for_each(|host| queue.leave(host));
        let next = queue.next();
        if next.is_none() {
            queue.threads -= 1;
        }
        next
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The next work for whose host another thread may be used.
    fn next(&mut self) -> Option<(IpAddr, Work)> {
        let at = self.waiting.iter().position(|(host, _)| self.may_wait_for(*host))?;
        let next = self.waiting.remove(at)?;
        *self.at_host.entry(network_of(next.0)).or_default() += 1;
        Some(next)
    }

    fn may_wait_for(&self, host: IpAddr) -> bool {
        self.at_host.get(&network_of(host)).is_none_or(|threads| *threads < THREADS_PER_HOST_MAX)
    }

    fn leave(&mut self, host: IpAddr) {
        let network = network_of(host);
        if let Some(threads) = self.at_host.get_mut(&network) {
            *threads -= 1;
            if *threads == 0 {
                self.at_host.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn host(number: usize) -> IpAddr {
        IpAddr::from((number as u32).to_be_bytes())
    }

    #[test]
    fn a_host_that_does_not_answer_does_not_delay_others() {
        let (queue, (done, dones)) = (HostQueue::default(), channel());
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let deaf = 2 * HOST_THREADS_MAX;
        for _ in 0..deaf {
            let (done, gate) = (done.clone(), Arc::clone(&gate));
            queue.run(host(1), move || {
                let _ = gate.lock().map(|gate| gate.recv());
                let _ = done.send(1);
            });
        }
        queue.run(host(2), move || {
            let _ = done.send(2);
        });
        assert_eq!(dones.recv_timeout(PATIENCE), Ok(2));
        let waiting = queue.queue().at_host.get(&network_of(host(1))).copied();
        assert!(waiting.is_some_and(|threads| threads <= THREADS_PER_HOST_MAX), "{waiting:?}");
        drop(open);
        for _ in 0..deaf {
            assert_eq!(dones.recv_timeout(PATIENCE), Ok(1));
        }
    }

    /// A host in an IPv6 network may use all addresses of the network.
    #[test]
    fn the_addresses_of_an_ipv6_network_use_the_threads_of_one_host() {
        let mut queue = Queue::default();
        for last in 0..2 * THREADS_PER_HOST_MAX as u16 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
            queue.waiting.push_back((address.into(), Box::new(|| {})));
        }
        queue.waiting.push_back((host(1), Box::new(|| {})));
        let begun: Vec<_> = std::iter::from_fn(|| queue.next().map(|(host, _)| host)).collect();
        assert_eq!((begun.len(), begun.last()), (THREADS_PER_HOST_MAX + 1, Some(&host(1))));
        begun.iter().for_each(|host| queue.leave(*host));
        assert!(queue.at_host.is_empty());
    }

    #[test]
    fn all_work_is_done_by_a_bounded_number_of_threads() {
        let (queue, (done, dones)) = (HostQueue::default(), channel());
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let count = 3 * HOST_THREADS_MAX;
        for number in 0..count {
            let (done, gate) = (done.clone(), Arc::clone(&gate));
            queue.run(host(number), move || {
                // No request continues before the gate is open.
                let _ = gate.lock().map(|gate| gate.recv());
                let _ = done.send(number);
            });
        }
        assert_eq!(queue.queue().threads, HOST_THREADS_MAX);
        drop(open);
        let mut all: Vec<_> = (0..count).map(|_| dones.recv_timeout(PATIENCE).unwrap()).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..count));
    }
}
