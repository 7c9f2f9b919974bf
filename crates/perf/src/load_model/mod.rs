//! Compares the model of load with the costs of calls. Consumers use one resource of the server's
//! machine after the other, in steps, while five small benchmarks run.
//!
//! In each step the server reports the ratio of each resource. From the first rounds a line is
//! fitted for each benchmark and resource, and the resource and the term that explain most are
//! kept. The last round is predicted by that line, and the prediction is compared with the
//! measurement.

mod consumer;
mod loads;
mod micro_benchmarks;
mod verdict;

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use comity_bench::process;
use comity_bench::targets;

pub(crate) use self::consumer::Consumer;
use self::loads::Loads;
pub(crate) use self::micro_benchmarks::MicroBenchmarks;
use self::verdict::Fit;
use crate::row_options::RowOptions;
use crate::server_process::{LOAD_PROCESSOR, SERVER_PROCESSOR, ServerProcess, TestBed};

/// The averages over a second follow a step within this time.
const SETTLE: Duration = Duration::from_millis(1500);

/// The measures taken while a consumer used a part of its resource.
struct LoadStep {
    loads: Loads,
    /// The time of a call of each benchmark, in microseconds.
    times: Vec<f64>,
}

/// A server, and the way to read its load.
struct LoadBench {
    test_bed: TestBed,
    server: ServerProcess,
    metrics: std::net::SocketAddr,
    quick: bool,
}

/// Measures and prints; returns whether each prediction is as good as it must be.
///
/// # Errors
/// The server or a consumer does not start, or a call is not answered as it must be.
pub fn run(options: &RowOptions) -> Result<bool> {
    ensure!(targets::enter_namespace()?, "this takes root: a network of its own");
    let bench = LoadBench::start(options)?;
    process::pin(None, &[LOAD_PROCESSOR])?;
    let mut micro = MicroBenchmarks::new(&bench.server)?;
    verdict::header();
    let mut missed = Vec::new();
    for consumer in Consumer::ALL.iter().filter(|one| options.is_wanted(one.name())) {
        let steps =
            bench.steps(*consumer, &mut micro).with_context(|| consumer.name().to_owned())?;
        for (at, name) in MicroBenchmarks::NAMES.iter().enumerate() {
            let verdict = Fit::of(&steps, at);
            verdict.print(consumer.name(), name);
            if !verdict.is_met() {
                missed.push(format!("{}, {name}", consumer.name()));
            }
        }
    }
    missed.iter().for_each(|name| println!("missed: {name}"));
    Ok(missed.is_empty())
}

impl LoadBench {
    fn start(options: &RowOptions) -> Result<Self> {
        let test_bed = TestBed::make(&options.subject)?;
        let metrics = targets::free_address()?;
        let shown = ["--metrics", &metrics.to_string()];
        let server = test_bed.start_comity_with(&[SERVER_PROCESSOR], true, &shown)?;
        Ok(Self { test_bed, server, metrics, quick: options.quick })
    }

    /// Takes all rounds of a consumer, one after the other; the last is for the comparison.
    fn steps(&self, consumer: Consumer, micro: &mut MicroBenchmarks) -> Result<Vec<Vec<LoadStep>>> {
        let levels: &[f64] =
            if self.quick { &[0.0, 0.5, 1.0] } else { &[0.0, 0.25, 0.5, 0.75, 1.0] };
        let rounds = if self.quick { 2 } else { 4 };
        let round = |micro: &mut MicroBenchmarks| {
            levels.iter().map(|level| self.step(consumer, *level, micro)).collect()
        };
        (0..rounds).map(|_| round(micro)).collect()
    }

    fn step(
        &self,
        consumer: Consumer,
        level: f64,
        micro: &mut MicroBenchmarks,
    ) -> Result<LoadStep> {
        let consuming =
            consumer.start(&self.test_bed, (self.server.address, SERVER_PROCESSOR), level)?;
        sleep(SETTLE);
        let times = micro.measure()?;
        let loads = Loads::read(&targets::metrics_page(self.metrics)?);
        drop(consuming);
        Ok(LoadStep { loads, times })
    }
}
