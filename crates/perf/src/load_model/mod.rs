//! Compares the model of load with the costs of calls. Consumers use one resource of the server's
//! machine after the other, in steps, while five small benchmarks run.
//!
//! In each step the server reports the ratio of each resource before the benchmarks begin, while a
//! light client calls NULL: the question is how long calls will take on a server that is so loaded,
//! and the benchmarks would be a load of their own. From the first rounds a line is fitted for each
//! benchmark and resource, and the resource and the term that explain most are kept. The last round
//! is predicted by that line, and the prediction is compared with the measurement.

mod consumer;
mod loads;
mod micro_benchmarks;
mod shaped_line;
mod verdict;

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use comity_bench::process;
use comity_bench::targets;

pub(crate) use self::consumer::Consumer;
use self::loads::Loads;
pub(crate) use self::micro_benchmarks::MicroBenchmarks;
use self::shaped_line::ShapedLine;
use self::verdict::Fit;
use crate::row_options::RowOptions;
use crate::server_process::{LOAD_PROCESSOR, SERVER_PROCESSOR, ServerProcess, TestBed};

/// The averages over a second follow a step within this time: what was before it has a weight of
/// 2 % then.
const SETTLE: Duration = Duration::from_secs(4);

/// The measures taken while a consumer used a part of its resource.
struct LoadStep {
    /// The part of the resource that the consumer was asked to use.
    level: f64,
    loads: Loads,
    /// The time of a call of each benchmark, in microseconds.
    times: Vec<f64>,
}

/// A server, a consumer of its resources, and the way to read its load.
struct LoadBench<'a> {
    test_bed: &'a TestBed,
    consumer: Consumer,
    server: ServerProcess,
    metrics: std::net::SocketAddr,
    /// The line that the network consumer fills, and the receiver of its datagrams, which reads
    /// none: a closed port would send errors over the line.
    _line: Option<(ShapedLine, UdpSocket)>,
}

/// Options of the comparison.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The servers and the rows that are measured.
    #[command(flatten)]
    pub(crate) rows: RowOptions,
    /// Write a plot for each consumer, in SVG, into this folder.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

/// Measures and prints; returns whether each prediction is as good as it must be.
///
/// # Errors
/// The server or a consumer does not start, or a call is not answered as it must be.
pub fn run(Options { rows: options, plots }: &Options) -> Result<bool> {
    ensure!(targets::enter_namespace()?, "this takes root: a network of its own");
    let test_bed = TestBed::make(&options.subject)?;
    process::pin(None, &[LOAD_PROCESSOR])?;
    plots.as_ref().map_or(Ok(()), std::fs::create_dir_all).context("make the folder of plots")?;
    verdict::header();
    let mut missed = Vec::new();
    for consumer in Consumer::ALL.iter().filter(|one| options.is_wanted(one.name())) {
        let steps = LoadBench::start(&test_bed, *consumer)
            .and_then(|bench| bench.rounds(options.quick))
            .with_context(|| consumer.name().to_owned())?;
        let fits: Vec<Fit> =
            (0..MicroBenchmarks::NAMES.len()).map(|at| Fit::of(&steps, at)).collect();
        for (fit, name) in fits.iter().zip(MicroBenchmarks::NAMES) {
            fit.print(consumer.name(), name);
            if !fit.is_met() {
                missed.push(format!("{}, {name}", consumer.name()));
            }
        }
        if let (Some(folder), Some(last)) = (plots, steps.last()) {
            draw(folder, *consumer, &fits, last)?;
        }
    }
    missed.iter().for_each(|name| println!("missed: {name}"));
    Ok(missed.is_empty())
}

/// Draws the measured and the predicted times of the last round.
fn draw(folder: &Path, consumer: Consumer, fits: &[Fit], last: &[LoadStep]) -> Result<()> {
    let named = fits.iter().zip(MicroBenchmarks::NAMES).enumerate();
    let calls: Vec<_> = named.map(|(at, (fit, name))| fit.compared(name, at, last)).collect();
    let title = format!("Calls while others use: {}", consumer.name());
    let labels = ("part in use by others", "time of a call, as a multiple");
    let place = folder.join(format!("load-{}.svg", consumer.name()));
    std::fs::write(&place, comity_bench::report::comparison(&title, labels, &calls))
        .with_context(|| format!("write {}", place.display()))
}

impl<'a> LoadBench<'a> {
    /// Starts a server of its own for each consumer: one fills a line of which the server is told.
    fn start(test_bed: &'a TestBed, consumer: Consumer) -> Result<Self> {
        let metrics = targets::free_address()?;
        let shown = ["--metrics", &metrics.to_string()];
        let begin_line = || anyhow::Ok((ShapedLine::begin()?, UdpSocket::bind(Consumer::SINK)?));
        let line = matches!(consumer, Consumer::Network(_)).then(begin_line).transpose()?;
        let prepare = |state_folder: &Path| match &line {
            Some(_) => ShapedLine::state(test_bed.program(), state_folder),
            None => Ok(()),
        };
        let server =
            test_bed.start_comity_prepared(&[SERVER_PROCESSOR], ("async", &shown), prepare)?;
        Ok(Self { test_bed, consumer, server, metrics, _line: line })
    }

    /// Takes all rounds, one after the other; the last is for the comparison.
    fn rounds(&self, quick: bool) -> Result<Vec<Vec<LoadStep>>> {
        let levels: &[f64] = if quick { &[0.0, 0.5, 1.0] } else { &[0.0, 0.25, 0.5, 0.75, 1.0] };
        let rounds = if quick { 2 } else { 4 };
        let mut micro = MicroBenchmarks::new(&self.server)?;
        let mut round = || levels.iter().map(|level| self.step(*level, &mut micro)).collect();
        (0..rounds).map(|_| round()).collect()
    }

    fn step(&self, level: f64, micro: &mut MicroBenchmarks) -> Result<LoadStep> {
        let at = (self.server.address, SERVER_PROCESSOR);
        let consuming = self.consumer.start(self.test_bed, at, level)?;
        micro.use_lightly(SETTLE)?;
        let loads = Loads::read(&targets::metrics_page(self.metrics)?);
        let times = micro.measure()?;
        drop(consuming);
        Ok(LoadStep { level, loads, times })
    }
}
