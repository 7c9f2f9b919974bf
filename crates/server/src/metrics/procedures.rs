//! The counts of each procedure, for programs that compare two readings.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::histogram::{Sum, bound_nanoseconds};
use super::recorder::{Ending, Metrics, Row, Sheet};

/// The counts of one procedure since the server started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcedureStats {
    /// The name of the program.
    pub program: &'static str,
    /// The version of the program.
    pub version: u32,
    /// The name of the procedure.
    pub procedure: &'static str,
    /// Calls that were answered.
    pub calls: u64,
    /// Calls that were answered with an error.
    pub failed: u64,
    /// Calls by their time; [`ProcedureStats::bound_nanoseconds`] has the bounds.
    pub latencies: Vec<u64>,
}

impl ProcedureStats {
    /// Returns the upper bound of a place of the latencies in nanoseconds; `None` for the last.
    #[must_use]
    pub fn bound_nanoseconds(place: usize) -> Option<u64> {
        bound_nanoseconds(place)
    }
}

impl Metrics {
    /// Returns the counts of all procedures that were called.
    #[must_use]
    pub fn procedures(&self) -> Vec<ProcedureStats> {
        let (rows, sheets) = self.snapshot();
        let all = rows.iter().enumerate();
        all.filter_map(|(at, row)| procedure(at, row, &sheets)).collect()
    }

    /// Returns the number of successful calls of each export, by its number.
    #[must_use]
    pub fn calls_by_export(&self) -> Vec<(u32, u64)> {
        let (_, sheets) = self.snapshot();
        let mut counts = std::collections::BTreeMap::<u32, u64>::new();
        for sheet in &sheets {
            sheet.each_export(|export, calls| *counts.entry(export).or_default() += calls);
        }
        counts.into_iter().collect()
    }
}

impl Sheet {
    fn each_export(&self, mut add: impl FnMut(u32, u64)) {
        for cells in &self.cells {
            for (place, calls) in cells.by_export.iter().enumerate() {
                if let Some(export) = self.export_at(place) {
                    add(export, calls.load(Ordering::Relaxed));
                }
            }
        }
        let others = self.others.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for ((_, ending, export), calls) in &*others {
            if let (Ending::Status(0), Some(export)) = (ending, export) {
                add(*export, *calls);
            }
        }
    }

    fn failures(&self, row: usize) -> u64 {
        let others = self.others.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let failed =
            others.iter().filter(|((at, ending, _), _)| *at == row && *ending != Ending::Status(0));
        failed.map(|(_, calls)| calls).sum()
    }
}

fn procedure(at: usize, row: &Row, sheets: &[Arc<Sheet>]) -> Option<ProcedureStats> {
    let mut sum = Sum::new();
    let cells = sheets.iter().filter_map(|sheet| sheet.cells.get(at));
    cells.for_each(|cells| sum.add(&cells.latency));
    (sum.count() > 0).then(|| ProcedureStats {
        program: row.program,
        version: row.version,
        procedure: row.procedure,
        calls: sum.count(),
        failed: sheets.iter().map(|sheet| sheet.failures(at)).sum(),
        latencies: sum.buckets.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn metrics() -> Arc<Metrics> {
        let metrics = Arc::<Metrics>::default();
        let row = |procedure| Row { program: "nfs", version: 3, procedure, status_name: |_| "" };
        metrics.add_rows(["NULL", "READ", "WRITE"].into_iter().map(row));
        metrics
    }

    #[test]
    fn calls_of_all_threads_are_counted_by_procedure_and_time() {
        let metrics = metrics();
        let slow = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| metrics.record(1, slow, Ending::Status(0), Some(7)));
            }
        });
        metrics.record(1, slow, Ending::Status(13), Some(7));
        metrics.record(1, slow, Ending::Rpc("GARBAGE_ARGS"), None);
        let procedures = metrics.procedures();
        assert_eq!(procedures.len(), 1, "only procedures that were called: {procedures:?}");
        let read = &procedures[0];
        assert_eq!((read.procedure, read.calls, read.failed), ("READ", 4, 2));
        let place = read.latencies.iter().position(|calls| *calls == 4).unwrap();
        assert!(ProcedureStats::bound_nanoseconds(place).unwrap() > 1_000_000_000);
        assert_eq!(metrics.calls_by_export(), [(7, 2)]);
    }
}
