use std::time::Duration;

use anyhow::Result;
use comity_bench::load::{Load, Stop};
use comity_bench::prober::Pages;
use comity_bench::{Operation, Stable};

use crate::server_process::{Prepared, ServerProcess};

/// The time of one sample.
const SAMPLE: Duration = Duration::from_millis(500);

const KIB4: u32 = 4096;
const MIB: u32 = 1 << 20;

/// The five calls whose time is predicted, one call at a time.
pub(crate) struct MicroBenchmarks(Vec<Prepared>);

impl MicroBenchmarks {
    /// The operations of the calls.
    pub(crate) const OPERATIONS: [Operation; 5] = [
        Operation::Null,
        Operation::Read(KIB4),
        Operation::Read(MIB),
        Operation::Write(KIB4, Stable::FileSync),
        Operation::Write(MIB, Stable::FileSync),
    ];

    pub(super) const NAMES: [&'static str; 5] =
        ["NULL", "READ 4K", "READ 1M", "WRITE 4K", "WRITE 1M"];

    /// Connects to the server.
    ///
    /// # Errors
    /// If the server's answer is wrong.
    pub(super) fn new(server: &ServerProcess) -> Result<Self> {
        let prepare = |operation| server.prepare(operation, &Pages::default(), (1, 1));
        Ok(Self(Self::OPERATIONS.into_iter().map(prepare).collect::<Result<_>>()?))
    }

    /// Returns the time of a call of each benchmark, in microseconds.
    ///
    /// # Errors
    /// If a reply is wrong or missing.
    pub(super) fn measure(&mut self) -> Result<Vec<f64>> {
        self.0.iter_mut().map(sample).collect()
    }
}

fn sample(prepared: &mut Prepared) -> Result<f64> {
    let load = Load { depth: 1, stop: Stop::After(SAMPLE) };
    let outcome = prepared.client.run(&prepared.script, load)?;
    Ok(outcome.seconds * 1e6 / outcome.calls.max(1) as f64)
}
