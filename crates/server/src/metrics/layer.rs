use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_rpc::{Call, Deferred, Done, Layer, Outcome, Program};
use comity_xdr::Encoder;

use super::recorder::{Ending, Metrics, Row, begun};
use crate::limits::MEASURED_PROCEDURES_MAX;

/// A wrapper around a program that counts and times its calls.
pub struct Measured<P> {
    program: P,
    metrics: Arc<Metrics>,
    version_low: u32,
    first_row: usize,
}

/// A slow half whose call is counted when it ends.
struct MeasuredLate {
    deferred: Box<dyn Deferred>,
    metrics: Arc<Metrics>,
    row: usize,
    begun: Instant,
    /// The time of the first half.
    first_half: Duration,
}

impl<P> Measured<P> {
    /// Measures `program`, which metrics call `name`; `status_name` returns the names of its
    /// statuses. All programs must be added before the first call is counted.
    pub fn new<V: ?Sized>(
        program: P,
        name: &'static str,
        status_name: fn(u32) -> &'static str,
        metrics: &Arc<Metrics>,
    ) -> Self
    where
        P: Program<V>,
    {
        let versions = program.versions();
        let version_low = *versions.start();
        let numbers = |version| (0..MEASURED_PROCEDURES_MAX).map(move |number| (version, number));
        let first_row = metrics.add_rows(versions.flat_map(numbers).map(|(version, number)| Row {
            program: name,
            version,
            procedure: program.procedure_name(version, number),
            status_name,
        }));
        Self { program, metrics: Arc::clone(metrics), version_low, first_row }
    }

    fn row(&self, call: &Call<'_>) -> usize {
        // Procedure numbers above the bound share the last row.
        let procedure = call.header.procedure.min(MEASURED_PROCEDURES_MAX - 1);
        let version = call.header.version - self.version_low;
        self.first_row + (version * MEASURED_PROCEDURES_MAX + procedure) as usize
    }
}

impl<V: ?Sized, P: Program<V>> Layer<V> for Measured<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        &self.program
    }

    fn answer(&self, call: &Call<'_>, visitor: &V, reply: &mut Encoder) -> Outcome {
        let begun = begun();
        let row = self.row(call);
        let call = Call { begun: Some(begun), ..*call };
        let outcome = self.program.call(&call, visitor, reply);
        let ending = match &outcome {
            Outcome::Done(done) => {
                self.metrics.record(row, begun, Ending::Status(done.status), done.export);
                return outcome;
            }
            Outcome::Deferred(_) => return self.late(row, begun, outcome),
            Outcome::ProcUnavail => "PROC_UNAVAIL",
            Outcome::GarbageArgs => "GARBAGE_ARGS",
            Outcome::SystemErr => "SYSTEM_ERR",
            Outcome::Denied(_) => "AUTH_ERROR",
            Outcome::Silence => "SILENCE",
        };
        self.metrics.record(row, begun, Ending::Rpc(ending), None);
        outcome
    }
}

impl<P> Measured<P> {
    fn late(&self, row: usize, begun: Instant, outcome: Outcome) -> Outcome {
        let Outcome::Deferred(deferred) = outcome else { return outcome };
        let (metrics, first_half) = (Arc::clone(&self.metrics), begun.elapsed());
        Outcome::Deferred(Box::new(MeasuredLate { deferred, metrics, row, begun, first_half }))
    }
}

impl Deferred for MeasuredLate {
    fn finish(self: Box<Self>, reply: &mut Encoder) -> Done {
        let Self { deferred, metrics, row, begun, first_half } = *self;
        // While it waits for its second half, a call uses no thread.
        let waited = begun.elapsed().saturating_sub(first_half);
        let done = deferred.finish(reply);
        metrics.record_late(row, (begun, waited), Ending::Status(done.status), done.export);
        done
    }
}
