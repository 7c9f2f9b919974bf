//! Memory that is used for peers, all of it counted and bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use comity_rpc::limits::RECORD_FRAGMENTS_MAX;

use crate::limits::{BATCH_BYTES, LARGE_BUFFERS_KEPT, RECORD_BYTES_MAX};
use crate::per_second::PerSecond;
use crate::sleepers::Sleepers;

/// Size of a buffer for the longest record with all its fragment headers, and for the bytes after
/// it.
pub(crate) const LARGE_BYTES: usize =
    RECORD_BYTES_MAX + 4 * RECORD_FRAGMENTS_MAX as usize + BATCH_BYTES;

/// The bytes that may be used for all connections together.
pub(crate) struct MemoryBudget {
    used: AtomicUsize,
    limit: usize,
    /// Unused buffers of [`LARGE_BYTES`]; new ones would cost page faults.
    kept: Mutex<Vec<Vec<u8>>>,
    /// The threads that sleep for all connections together.
    asleep: Arc<AtomicUsize>,
}

/// The memory used for one address.
pub(crate) struct Account {
    budget: Arc<MemoryBudget>,
    held: AtomicUsize,
    /// The threads that sleep for it.
    pub(crate) sleepers: Sleepers,
    /// The handshakes that it began in this second as a stranger.
    pub(crate) handshakes: PerSecond,
}

/// A share of the budget, which is returned when it is dropped.
pub(crate) struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

/// A buffer for one long record, which is returned when it is dropped.
pub(crate) struct LargeBuffer {
    bytes: Vec<u8>,
    charge: Charge,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize) -> Self {
        let (used, kept, asleep) = Default::default();
        Self { used, limit, kept, asleep }
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Makes an account for an address.
    pub(crate) fn account(self: &Arc<Self>) -> Account {
        let sleepers = Sleepers::new(Arc::clone(&self.asleep));
        let (held, handshakes) = Default::default();
        Account { budget: Arc::clone(self), held, sleepers, handshakes }
    }
}

impl Account {
    /// Takes `bytes` if the address then uses no more than is left for all others. A single address
    /// that takes all it can gets half, several addresses get equal parts, and one such part is
    /// left for the next address (Choudhury and Hahne: dynamic queue length thresholds, IEEE/ACM
    /// ToN 1998).
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let used = self.budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let charge = Charge { account: Arc::clone(self), bytes };
        (held <= self.budget.limit.checked_sub(used)?).then_some(charge)
    }

    /// Returns a buffer for the longest record, if there is memory for it.
    pub(crate) fn large(self: &Arc<Self>) -> Option<LargeBuffer> {
        let charge = self.charge(LARGE_BYTES)?;
        let kept = self.budget.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Some(LargeBuffer { bytes: kept.unwrap_or_else(|| vec![0; LARGE_BYTES]), charge })
    }
}

impl LargeBuffer {
    pub(crate) const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Swaps its memory with that of `buffer`, which has the same size.
    pub(crate) const fn trade(&mut self, buffer: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes, buffer);
    }
}

impl Drop for LargeBuffer {
    fn drop(&mut self) {
        let mut kept =
            self.charge.account.budget.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < LARGE_BUFFERS_KEPT {
            kept.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_bounded_and_come_back() {
        let budget = Arc::new(MemoryBudget::new(100));
        let account = Arc::new(budget.account());
        let charge = account.charge(40).unwrap();
        assert!(account.charge(11).is_none());
        assert_eq!(budget.used(), 40);
        drop(charge);
        assert_eq!(budget.used(), 0);
        assert_eq!(account.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_greedy_client_leaves_as_much_to_the_next() {
        let budget = Arc::new(MemoryBudget::new(1_200));
        let accounts: Vec<_> = (0..5).map(|_| Arc::new(budget.account())).collect();
        let mut charges = Vec::new();
        for _ in 0..1_200 {
            for account in &accounts {
                charges.extend(account.charge(1));
            }
        }
        for account in &accounts {
            assert_eq!(account.held.load(Ordering::Relaxed), 200);
        }
        assert!(Arc::new(budget.account()).charge(100).is_some());
    }

    #[test]
    fn a_large_buffer_is_used_again() {
        let budget = Arc::new(MemoryBudget::new(2 * LARGE_BYTES));
        let account = Arc::new(budget.account());
        let mut buffer = account.large().unwrap();
        buffer.bytes()[7] = 9;
        assert!(account.large().is_none());
        drop(buffer);
        assert_eq!(account.large().unwrap().bytes()[7], 9);
    }
}
