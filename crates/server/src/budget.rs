//! Memory held for peers, all of it counted and bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use comity_rpc::limits::RECORD_FRAGMENTS_MAX;

use crate::limits::{BATCH_BYTES, LARGE_BUFFERS_KEPT, RECORD_BYTES_MAX};

/// Room for the longest record with all its fragment headers, and for the bytes behind it.
pub(crate) const LARGE_BYTES: usize =
    RECORD_BYTES_MAX + 4 * RECORD_FRAGMENTS_MAX as usize + BATCH_BYTES;

/// The bytes that may be held for all connections together.
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
    /// Buffers of [`LARGE_BYTES`] that nobody uses; fresh ones cost page faults.
    kept: Mutex<Vec<Vec<u8>>>,
}

/// A share of the budget, given back when dropped.
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

/// A buffer for one long record, given back when dropped.
pub(crate) struct LargeBuffer {
    bytes: Vec<u8>,
    charge: Charge,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: AtomicUsize::new(0), limit, kept: Mutex::default() }
    }

    /// Bytes held now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, if there are as many left.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        let charge = Charge { budget: Arc::clone(self), bytes };
        (used + bytes <= self.limit).then_some(charge)
    }

    /// A buffer for the longest record, if there is room for one.
    pub(crate) fn large(self: &Arc<Self>) -> Option<LargeBuffer> {
        let charge = self.charge(LARGE_BYTES)?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Some(LargeBuffer { bytes: kept.unwrap_or_else(|| vec![0; LARGE_BYTES]), charge })
    }
}

impl LargeBuffer {
    pub(crate) const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Trades its memory for that of `buffer`, which is of the same size.
    pub(crate) const fn trade(&mut self, buffer: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes, buffer);
    }
}

impl Drop for LargeBuffer {
    fn drop(&mut self) {
        let mut kept = self.charge.budget.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < LARGE_BUFFERS_KEPT {
            kept.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_charged_is_bounded_and_comes_back() {
        let budget = Arc::new(Budget::new(100));
        let charge = budget.charge(60).unwrap();
        assert!(budget.charge(41).is_none());
        assert_eq!(budget.used(), 60);
        drop(charge);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_large_buffer_is_used_again() {
        let budget = Arc::new(Budget::new(LARGE_BYTES));
        let mut buffer = budget.large().unwrap();
        buffer.bytes()[7] = 9;
        assert!(budget.large().is_none());
        drop(buffer);
        assert_eq!(budget.large().unwrap().bytes()[7], 9);
    }
}
