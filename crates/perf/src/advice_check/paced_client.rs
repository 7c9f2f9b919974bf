use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use comity_bench::call_templates::CallTemplates;
use comity_bench::load::{Client, OpenLoad};
use comity_bench::prober::Pages;

use crate::load_model::MicroBenchmarks;
use crate::server_process::ServerProcess;

/// The time of one sample of each kind of call.
const SAMPLE: Duration = Duration::from_secs(1);

/// Calls a second of each operation of [`MicroBenchmarks`], which use a small part of a processor.
const RATES: [f64; 5] = [200.0, 200.0, 50.0, 50.0, 20.0];

/// A client that makes the five calls of the model of load, one kind after the other, at a constant
/// rate. It can follow its export to another server of the same files.
pub(super) struct PacedClient {
    scripts: Vec<(CallTemplates, f64)>,
    client: Client,
}

impl PacedClient {
    /// Connects to the server.
    ///
    /// # Errors
    /// If the server's answer is wrong.
    pub(super) fn new(server: &ServerProcess) -> Result<Self> {
        let script = |(operation, rate)| Ok((server.script(operation, &Pages::default())?, rate));
        let calls = MicroBenchmarks::OPERATIONS.into_iter().zip(RATES);
        let scripts = calls.map(script).collect::<Result<_>>()?;
        Ok(Self { scripts, client: Client::connect(server.address, 1)? })
    }

    /// Makes further calls at another server; the handles are the same there.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) fn follow(&mut self, server: SocketAddr) -> Result<()> {
        self.client = Client::connect(server, 1)?;
        Ok(())
    }

    /// Returns the mean time of each kind of call, in microseconds.
    ///
    /// # Errors
    /// If a reply is wrong or missing.
    pub(super) fn time(&mut self) -> Result<Vec<f64>> {
        let client = &mut self.client;
        let sample = |(script, rate): &(CallTemplates, f64)| {
            let load = OpenLoad { rate: *rate, time: SAMPLE, depth: 16, seed: 1 };
            Ok(client.run_open(script, load)?.latency.mean() / 1e3)
        };
        self.scripts.iter().map(sample).collect()
    }
}
