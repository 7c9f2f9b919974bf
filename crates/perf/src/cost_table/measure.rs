//! Measures every target in turn under the same load, round after round.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use comity_bench::Operation;
use comity_bench::call_templates::CallTemplates;
use comity_bench::fixture_tree::{FixtureTree, SMALL_FILES};
use comity_bench::load::{Client, Load, LoadOutcome, Stop};
use comity_bench::prober::Pages;
use comity_remote::nfs3::list;
use comity_remote::rpc::Caller;

use super::Bench;
use crate::baseline_server;
use crate::server_process::{Prepared, SERVER_PROCESSOR, ServerProcess};

/// The load of most rows.
pub(super) const CONNECTIONS: usize = 4;
pub(super) const DEPTH: usize = 8;

/// Files created in a sample: in a whole run, and with `--quick`.
const CREATED: (u64, u64) = (8_000, 2_000);
/// Directories listed for the first time in a sample.
const COLD_DIRECTORIES: (usize, usize) = (16, 6);

/// Rest of directories before they are listed, in milliseconds.
const REST_MILLISECONDS: u64 = 200;

/// Figures of each target, one a round.
pub(super) type Figures = Vec<Vec<f64>>;

/// Processor time of the server for each call or entry, in microseconds.
pub(super) fn cost(bench: &Bench, operation: Operation) -> Result<Figures> {
    in_turn(bench, operation, (CONNECTIONS, DEPTH), |sample| sample.cost())
}

/// Calls a second.
pub(super) fn rate(bench: &Bench, operation: Operation) -> Result<Figures> {
    in_turn(bench, operation, (CONNECTIONS, DEPTH), |sample| sample.rate())
}

/// Measures the median time of a call in microseconds, with one call outstanding.
pub(super) fn latency(bench: &Bench, operation: Operation) -> Result<Figures> {
    in_turn(bench, operation, (1, 1), |sample| {
        sample.outcome.latency.value_at_quantile(0.5) as f64 / 1e3
    })
}

/// The result of a load, with its cost to the server.
pub(crate) struct Sample {
    pub(super) outcome: LoadOutcome,
    nanoseconds: u64,
}

impl Sample {
    /// Takes a sample. A load of a fifth of its length runs before it and does not count.
    pub(crate) fn take(
        target: &ServerProcess,
        client: &mut Client,
        script: &CallTemplates,
        load: Load,
    ) -> Result<Self> {
        if let Stop::After(time) = load.stop {
            client.run(script, Load { stop: Stop::After(time / 5), ..load })?;
        }
        let before = target.cpu_time()?;
        let outcome = client.run(script, load).with_context(|| target.name)?;
        let nanoseconds = target.cpu_time()?.since(&before);
        ensure!(nanoseconds > 0, "{} used no time at all", target.name);
        Ok(Self { outcome, nanoseconds })
    }

    /// Processor time of the server for each call or entry, in microseconds.
    pub(crate) fn cost(&self) -> f64 {
        self.nanoseconds as f64 / 1e3 / self.outcome.units as f64
    }

    /// Calls or entries a second.
    pub(super) fn rate(&self) -> f64 {
        self.outcome.units as f64 / self.outcome.seconds
    }
}

impl Bench {
    /// A load of one sample's length.
    pub(super) fn load(&self, depth: usize) -> Load {
        Load { depth, stop: Stop::After(Duration::from_secs_f64(self.seconds)) }
    }

    pub(super) const fn pick<T: Copy>(&self, (whole, quick): (T, T)) -> T {
        if self.quick { quick } else { whole }
    }
}

fn in_turn(
    bench: &Bench,
    operation: Operation,
    (connections, depth): (usize, usize),
    figure: impl Fn(&Sample) -> f64,
) -> Result<Figures> {
    let mut figures = vec![Vec::new(); bench.targets.len()];
    let mut prepared = Vec::new();
    for target in &bench.targets {
        prepared.push(target.prepare(operation, &small(), (connections, depth))?);
    }
    for _ in 0..bench.rounds {
        for (number, target) in bench.targets.iter().enumerate() {
            let Prepared { script, client, .. } = &mut prepared[number];
            let sample = Sample::take(target, client, script, bench.load(depth))?;
            figures[number].push(figure(&sample));
        }
    }
    Ok(figures)
}

/// Processor time of a CREATE in an export that answers before the name is on stable storage, as
/// the other servers do, in microseconds.
pub(super) fn create_cost(bench: &Bench) -> Result<Figures> {
    let relaxed = bench.test_bed.start_comity(&[SERVER_PROCESSOR], true)?;
    let other = |target: &ServerProcess| target.name != "comity";
    let targets = bench.targets.iter().map(|target| if other(target) { target } else { &relaxed });
    creating(bench, &targets.collect::<Vec<_>>(), Sample::cost)
}

/// CREATE as it is by default, a second: on stable storage before the reply, for comity alone.
pub(super) fn create_rate(bench: &Bench) -> Result<Figures> {
    creating(bench, &bench.targets.iter().collect::<Vec<_>>(), Sample::rate)
}

fn creating(
    bench: &Bench,
    targets: &[&ServerProcess],
    figure: impl Fn(&Sample) -> f64,
) -> Result<Figures> {
    let mut figures = vec![Vec::new(); targets.len()];
    for _ in 0..bench.rounds {
        for (number, target) in targets.iter().enumerate() {
            figures[number].push(figure(&create(bench, target)?));
        }
    }
    Ok(figures)
}

/// Files are made in a new directory for each sample, and stay: ext4 skips the inodes of files that
/// were removed a moment ago, which would be measured instead.
fn create(bench: &Bench, target: &ServerProcess) -> Result<Sample> {
    let created = bench.test_bed.layout.new_directory("created-")?;
    let script = target.script(Operation::Create, &Pages { created, listed: Vec::new() })?;
    let load = Load { depth: DEPTH, stop: Stop::Calls(bench.pick(CREATED)) };
    let mut client = Client::connect(target.address, CONNECTIONS)?;
    Sample::take(target, &mut client, &script, load)
}

/// Listings of directories that the server has never listed, in microseconds of its time for each
/// entry. The minimal server reads the attributes and the handle of each entry, because every reply
/// needs them.
pub(super) fn cold_listing(bench: &Bench) -> Result<Figures> {
    cold_listings(bench, "cold", true)
}

/// The same against a minimal server that reads attributes only.
pub(super) fn cold_listing_without_handles(bench: &Bench) -> Result<Figures> {
    cold_listings(bench, "cold-bare", false)
}

fn cold_listings(bench: &Bench, prefix: &str, handles: bool) -> Result<Figures> {
    let mut figures = vec![Vec::new(); bench.targets.len()];
    for round in 0..bench.rounds {
        let directories: Vec<_> =
            (0..bench.pick(COLD_DIRECTORIES)).map(|n| format!("{prefix}-{round}-{n}")).collect();
        for directory in &directories {
            bench.test_bed.layout.listing(directory, SMALL_FILES)?;
        }
        // Directories that are listed for the first time have rarely changed a moment ago.
        sleep(Duration::from_millis(REST_MILLISECONDS));
        for (number, target) in bench.targets.iter().enumerate() {
            let cost = match target.root() {
                Some(root) => list_once(target, root, &directories)?,
                None => list_raw(bench, target, &directories, handles)?,
            };
            figures[number].push(cost);
        }
    }
    Ok(figures)
}

fn list_once(target: &ServerProcess, root: &[u8], directories: &[String]) -> Result<f64> {
    let mut caller = Caller::connect(target.address)?;
    let mut handles = Vec::new();
    for directory in directories {
        handles.push(caller.walk(root, directory)?);
    }
    let before = target.cpu_time()?;
    let mut entries = 0;
    for handle in &handles {
        let pages = list(&mut caller, handle)?;
        let listed: usize = pages.iter().map(|page| page.entries.len()).sum();
        ensure!(listed == SMALL_FILES + 2, "{listed} entries listed");
        entries += listed;
    }
    let used = target.cpu_time()?.since(&before);
    Ok(used as f64 / 1e3 / entries as f64)
}

/// The minimal server has no cookies to learn: the pages are known beforehand.
fn list_raw(
    bench: &Bench,
    target: &ServerProcess,
    directories: &[String],
    handles: bool,
) -> Result<f64> {
    let pages = Pages { created: String::new(), listed: directories.to_vec() };
    let script = match handles {
        true => baseline_server::listing_with_handles(&bench.test_bed.layout, directories)?,
        false => target.script(Operation::Readdirplus, &pages)?,
    };
    let mut client = Client::connect(target.address, 1)?;
    let load = Load { depth: 1, stop: Stop::Calls(script.templates.len() as u64) };
    Ok(Sample::take(target, &mut client, &script, load)?.cost())
}

/// The directory that is listed in most rows.
pub(super) fn small() -> Pages {
    Pages { created: String::new(), listed: vec![FixtureTree::SMALL.to_owned()] }
}
