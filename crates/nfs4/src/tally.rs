use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use comity_proto::nfs4::operation;

use crate::ops::name;

/// Numbers of operations, and one for those that are none.
const OPERATIONS: usize = operation::REMOVEXATTR as usize + 2;

/// Threads that count side by side without getting into each other's way.
const SHEETS: usize = 16;

/// How often each operation was done inside of COMPOUNDs, and how often it failed.
pub struct Tally {
    sheets: [Sheet; SHEETS],
}

/// What some of the threads have counted.
#[repr(align(64))]
struct Sheet {
    ok: [AtomicU64; OPERATIONS],
    failed: [AtomicU64; OPERATIONS],
}

/// How often an operation was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// What the RFC calls it.
    pub operation: &'static str,
    /// With success.
    pub ok: u64,
    /// Without.
    pub failed: u64,
}

impl Default for Tally {
    fn default() -> Self {
        let zeros = || [const { AtomicU64::new(0) }; OPERATIONS];
        Self { sheets: std::array::from_fn(|_| Sheet { ok: zeros(), failed: zeros() }) }
    }
}

impl Tally {
    /// Counts an operation.
    pub(crate) fn count(&self, number: u32, ok: bool) {
        let Some(sheet) = self.sheets.get(own_sheet()) else { return };
        let counts = if ok { &sheet.ok } else { &sheet.failed };
        let at = (number as usize).min(OPERATIONS - 1);
        if let Some(count) = counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Every operation that was done at all.
    #[must_use]
    pub fn counted(&self) -> Vec<Counted> {
        let sum = |of: fn(&Sheet) -> &[AtomicU64; OPERATIONS], number: usize| {
            let counts = self.sheets.iter().filter_map(|sheet| of(sheet).get(number));
            counts.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        let one = |number: usize| Counted {
            operation: name(number as u32),
            ok: sum(|sheet| &sheet.ok, number),
            failed: sum(|sheet| &sheet.failed, number),
        };
        (0..OPERATIONS).map(one).filter(|counted| counted.ok + counted.failed > 0).collect()
    }
}

/// The sheet of this thread.
fn own_sheet() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    OWN.get().unwrap_or_else(|| {
        let own = NEXT.fetch_add(1, Ordering::Relaxed) % SHEETS;
        OWN.set(Some(own));
        own
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_threads_did_is_counted_by_name() {
        let tally = Tally::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| tally.count(operation::READ, true));
            }
        });
        tally.count(operation::READ, false);
        tally.count(operation::ILLEGAL, false);
        let counted = |operation, ok, failed| Counted { operation, ok, failed };
        assert_eq!(tally.counted(), [counted("READ", 20, 1), counted("ILLEGAL", 0, 1)]);
    }
}
