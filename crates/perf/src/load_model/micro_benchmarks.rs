use std::time::Duration;

use anyhow::Result;
use comity_bench::load::{Load, OpenLoad, Stop};
use comity_bench::prober::Pages;
use comity_bench::statistics::median;
use comity_bench::{Operation, Stable};

use crate::server_process::{Prepared, ServerProcess};

/// The time of one sample.
const SAMPLE: Duration = Duration::from_millis(120);
/// Samples of which the median is taken.
const SAMPLES: usize = 5;

/// Calls a second of a client that uses little of the server.
const LIGHT_RATE: f64 = 1000.0;

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

    /// Is a light client for a while: it calls NULL at a constant rate.
    ///
    /// # Errors
    /// If a reply is wrong or missing.
    pub(super) fn use_lightly(&mut self, time: Duration) -> Result<()> {
        let light = OpenLoad { rate: LIGHT_RATE, time, depth: 16, seed: 1 };
        if let Some(null) = self.0.first_mut() {
            null.client.run_open(&null.script, light)?;
        }
        Ok(())
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
    let mut time = || {
        let outcome = prepared.client.run(&prepared.script, load)?;
        anyhow::Ok(outcome.seconds * 1e6 / outcome.calls.max(1) as f64)
    };
    let times = (0..SAMPLES).map(|_| time()).collect::<Result<Vec<_>>>()?;
    Ok(median(&times).unwrap_or(f64::NAN))
}
