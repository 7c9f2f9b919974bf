use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use comity_proto::nfs4::operation;

/// Number of operation counters: one for each operation number, and one for undefined numbers.
pub(crate) const OPERATIONS: usize = operation::REMOVEXATTR as usize + 2;

/// Number of counter sets. All sets but the last belong to one thread each, so that threads do not
/// contend for a cache line.
const SETS: usize = 16;

/// The set of all threads that have no set of their own.
const SHARED: usize = SETS - 1;

/// One bit for each set that belongs to a thread.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Counts of successes and failures of each operation within COMPOUNDs.
pub struct OperationCounters {
    threads: [ThreadCounters; SETS],
}

/// The counters of one thread, or of all threads that share a set.
#[repr(align(64))]
struct ThreadCounters {
    ok: [AtomicU64; OPERATIONS],
    failed: [AtomicU64; OPERATIONS],
}

/// The counts of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Its name in the RFC.
    pub operation: &'static str,
    /// Number of times it succeeded.
    pub ok: u64,
    /// Number of times it failed.
    pub failed: u64,
}

impl Default for OperationCounters {
    fn default() -> Self {
        let zeros = || [const { AtomicU64::new(0) }; OPERATIONS];
        Self { threads: std::array::from_fn(|_| ThreadCounters { ok: zeros(), failed: zeros() }) }
    }
}

impl OperationCounters {
    /// Counts an operation.
    pub(crate) fn count(&self, number: u32, ok: bool) {
        let own = OWN.try_with(|own| own.0).unwrap_or(SHARED);
        let Some(counters) = self.threads.get(own) else { return };
        let counts = if ok { &counters.ok } else { &counters.failed };
        let at = (number as usize).min(OPERATIONS - 1);
        let Some(count) = counts.get(at) else { return };
        if own == SHARED {
            count.fetch_add(1, Ordering::Relaxed);
        } else {
            // No other thread writes this counter, so a slower atomic addition is not needed.
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Returns how often an operation succeeded and failed.
    pub(crate) fn sums(&self, number: usize) -> (u64, u64) {
        let sum = |of: fn(&ThreadCounters) -> &[AtomicU64; OPERATIONS]| {
            let counts = self.threads.iter().filter_map(|counters| of(counters).get(number));
            counts.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        (sum(|counters| &counters.ok), sum(|counters| &counters.failed))
    }
}

/// The number of a thread's own set, until the thread ends.
struct Own(usize);

thread_local! {
    static OWN: Own = Own::take();
}

impl Own {
    fn take() -> Self {
        let lowest = |taken: u32| {
            let free = taken.trailing_ones();
            ((free as usize) < SHARED).then_some(taken | 1 << free)
        };
        let before = TAKEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, lowest);
        Self(before.map_or(SHARED, |taken| taken.trailing_ones() as usize))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if self.0 != SHARED {
            TAKEN.fetch_and(!(1 << self.0), Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_all_threads_are_counted_by_name() {
        let counters = OperationCounters::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..1000).for_each(|_| counters.count(operation::READ, true)));
            }
        });
        counters.count(operation::READ, false);
        counters.count(operation::ILLEGAL, false);
        let counted = |operation, ok, failed| Counted { operation, ok, failed };
        assert_eq!(counters.counted(), [counted("READ", 20_000, 1), counted("ILLEGAL", 0, 1)]);
    }
}
