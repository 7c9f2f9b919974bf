//! Bounds on the handshakes of all connections: the number computed at once, and the number that
//! strangers may begin.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::limits::{STRANGER_HANDSHAKES_A_SECOND, STRANGER_HANDSHAKES_PER_ADDRESS};
use crate::memory_budget::Account;
use crate::per_second::PerSecond;

/// The handshakes of a server.
pub(crate) struct HandshakeSlots {
    free: Mutex<usize>,
    freed: Condvar,
    strangers: PerSecond,
}

impl HandshakeSlots {
    /// Allows as many handshakes at once as half of the event loops: the others continue to serve
    /// calls.
    pub(crate) fn new(event_loops: usize) -> Self {
        let free = Mutex::new((event_loops / 2).max(1));
        Self { free, freed: Condvar::new(), strangers: PerSecond::default() }
    }

    /// Runs a step of a handshake once a slot is free. The thread has left its event loop.
    pub(crate) fn run<T>(&self, step: impl FnOnce() -> T) -> T {
        let free = self.freed.wait_while(self.free(), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        let _slot = TakenSlot(self);
        step()
    }

    /// Counts a handshake of a peer to which nothing is offered; `false` if it has to wait.
    pub(crate) fn take_stranger(&self, account: &Account, second: u32) -> bool {
        account.handshakes.take(second, STRANGER_HANDSHAKES_PER_ADDRESS)
            && self.strangers.take(second, STRANGER_HANDSHAKES_A_SECOND)
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TakenSlot<'a>(&'a HandshakeSlots);

impl Drop for TakenSlot<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::memory_budget::MemoryBudget;

    #[test]
    fn strangers_begin_a_bounded_number_each_second_and_one_address_a_part() {
        let slots = HandshakeSlots::new(1);
        let account = || Arc::new(MemoryBudget::new(0)).account();
        let take_all = |account: &Account, second| {
            (0..1000).filter(|_| slots.take_stranger(account, second)).count() as u32
        };
        let first = account();
        assert_eq!(take_all(&first, 7), STRANGER_HANDSHAKES_PER_ADDRESS);
        let others: u32 = (0..100).map(|_| take_all(&account(), 7)).sum();
        assert_eq!(others, STRANGER_HANDSHAKES_A_SECOND - STRANGER_HANDSHAKES_PER_ADDRESS);
        assert_eq!(take_all(&first, 8), STRANGER_HANDSHAKES_PER_ADDRESS);
    }

    #[test]
    fn no_more_are_computed_at_once_than_there_are_slots() {
        let slots = HandshakeSlots::new(4);
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let step = || {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| (0..100).for_each(|_| slots.run(step)));
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 2);
        assert_eq!(*slots.free(), 2);
    }
}
