//! The counts of each procedure, for programs that compare two samples.

use std::collections::BTreeMap;

use super::histogram::{Sum, bound_nanoseconds};
use super::recorder::{Ending, Metrics, Row};
use super::sums::{counts, latency, service_by_export};

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
    /// Calls by latency bucket; [`ProcedureStats::bound_nanoseconds`] returns the bounds.
    pub latencies: Vec<u64>,
}

impl ProcedureStats {
    /// Returns the upper bound of a latency bucket in nanoseconds; `None` for the last.
    #[must_use]
    pub fn bound_nanoseconds(place: usize) -> Option<u64> {
        bound_nanoseconds(place)
    }
}

/// The counts at one time.
#[derive(Debug, Clone, Default)]
pub struct Readings {
    /// The procedures that were called.
    pub procedures: Vec<ProcedureStats>,
    /// Successful calls by the number of the export.
    pub calls_by_export: BTreeMap<u32, u64>,
    /// The time that calls took, in nanoseconds, by the number of the export.
    pub service_by_export: BTreeMap<u32, u64>,
}

impl Metrics {
    /// Reads the counts of all procedures and exports.
    #[must_use]
    pub fn read(&self) -> Readings {
        let (rows, threads) = self.snapshot();
        let (mut failed, mut calls_by_export) = (vec![0; rows.len()], BTreeMap::new());
        for ((row, ending, export), calls) in counts(&threads) {
            match (ending, export, failed.get_mut(row)) {
                (Ending::Status(0), Some(export), _) => {
                    *calls_by_export.entry(export).or_default() += calls;
                }
                (Ending::Status(0), None, _) => {}
                (_, _, Some(failed)) => *failed += calls,
                (_, _, None) => {}
            }
        }
        let rows = rows.iter().zip(failed).enumerate();
        let procedures =
            rows.filter_map(|(at, (row, failed))| procedure(row, failed, &latency(&threads, at)));
        let procedures = procedures.collect();
        let service_by_export = service_by_export(&threads);
        Readings { procedures, calls_by_export, service_by_export }
    }
}

fn procedure(row: &Row, failed: u64, latency: &Sum) -> Option<ProcedureStats> {
    (latency.count() > 0).then(|| ProcedureStats {
        program: row.program,
        version: row.version,
        procedure: row.procedure,
        calls: latency.count(),
        failed,
        latencies: latency.buckets.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
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
        let Readings { procedures, calls_by_export, service_by_export } = metrics.read();
        assert_eq!(procedures.len(), 1, "only procedures that were called: {procedures:?}");
        let read = &procedures[0];
        assert_eq!((read.procedure, read.calls, read.failed), ("READ", 4, 2));
        let place = read.latencies.iter().position(|calls| *calls == 4).unwrap();
        assert!(ProcedureStats::bound_nanoseconds(place).unwrap() > 1_000_000_000);
        assert_eq!(calls_by_export, BTreeMap::from([(7, 2)]));
        assert_eq!(service_by_export.keys().collect::<Vec<_>>(), [&7]);
        assert!(service_by_export[&7] >= 3_000_000_000, "failed calls count, too");
    }
}
