use std::time::Duration;

use anyhow::Result;

use crate::server_process::{Prepared, ServerProcess};
use comity_bench::Operation;
use comity_bench::load::{Load, Stop};
use comity_bench::prober::Pages;

/// The time of one sample.
const SAMPLE: Duration = Duration::from_millis(300);

/// The client whose calls a second and p99 are measured.
pub(super) struct Listed {
    loads: Vec<(Prepared, usize)>,
}

/// One measure of the listed client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Calls a second.
    pub(super) rate: f64,
    /// Latencies in nanoseconds.
    pub(super) p99: f64,
}

impl Listed {
    /// The names of the measures: an operation and its outstanding calls.
    pub(super) const NAMES: [&'static str; 4] =
        ["GETATTR 1", "GETATTR 8", "READ 4K 1", "READ 4K 8"];

    /// Connects before any stranger does.
    pub(super) fn new(server: &ServerProcess) -> Result<Self> {
        let loads = [Operation::Getattr, Operation::Read(4096)]
            .into_iter()
            .flat_map(|operation| [(operation, 1), (operation, 8)])
            .map(|(operation, depth)| {
                Ok((server.prepare(operation, &Pages::default(), (1, depth))?, depth))
            })
            .collect::<Result<_>>()?;
        Ok(Self { loads })
    }

    /// Takes one sample of each of [`Self::NAMES`].
    pub(super) fn measure(&mut self) -> Result<Vec<Sample>> {
        self.loads.iter_mut().map(|(load, depth)| sample(load, *depth)).collect()
    }
}

fn sample(load: &mut Prepared, depth: usize) -> Result<Sample> {
    let outcome = load.client.run(&load.script, Load { depth, stop: Stop::After(SAMPLE) })?;
    let p99 = outcome.latency.value_at_quantile(0.99) as f64;
    Ok(Sample { rate: outcome.calls as f64 / outcome.seconds, p99 })
}
