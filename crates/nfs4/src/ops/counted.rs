use super::name;
use crate::operation_counters::{Counted, OPERATIONS, OperationCounters};

impl OperationCounters {
    /// Returns the counts of all operations that were executed at least once.
    #[must_use]
    pub fn counted(&self) -> Vec<Counted> {
        let one = |number: usize| {
            let (ok, failed) = self.sums(number);
            Counted { operation: name(number as u32), ok, failed }
        };
        (0..OPERATIONS).map(one).filter(|counted| counted.ok + counted.failed > 0).collect()
    }
}
