//! Comity against itself: the effect of more cores, files and connections, and the memory that it
//! uses.

use std::time::Duration;

use anyhow::{Context, Result};
use comity_bench::Operation;
use comity_bench::call_templates::CallTemplates;
use comity_bench::fixture_tree::HUGE_FILES;
use comity_bench::load::Client;
use comity_bench::prober::nfs3::Prober;
use comity_bench::process;
use comity_remote::nfs3::list;
use comity_remote::rpc::Caller;

use super::Bench;
use super::measure::{CONNECTIONS, DEPTH, Sample, small};
use super::rows::Itself;
use crate::baseline_server;
use crate::server_process::{LOAD_PROCESSOR, SERVER_PROCESSOR, ServerProcess};

/// The number of idle connections in the memory row. Together with [`FIRST_CONNECTIONS`] they are
/// as many as the server accepts from one address.
const IDLE_CONNECTIONS: usize = 900;
/// The number of connections opened beforehand, so that memory that is allocated once is not
/// counted.
const FIRST_CONNECTIONS: usize = 64;
/// Longest time that the server may take to come to rest, in milliseconds.
const REST_MILLISECONDS: u64 = 200;

/// Entries listed in a microsecond by four connections, on two cores and on one. Listing is
/// measured because it costs the server much and the load generator, which needs a core too,
/// little.
pub(super) fn two_cores(bench: &Bench) -> Result<Itself> {
    on_two_cores(bench, Operation::Readdirplus, |sample| sample.rate() / 1e6)
}

/// Processor time of a small call on two cores and on one, which shows the cost of sharing.
pub(super) fn two_cores_cost(bench: &Bench) -> Result<Itself> {
    on_two_cores(bench, Operation::Getattr, Sample::cost)
}

fn on_two_cores(
    bench: &Bench,
    operation: Operation,
    figure: impl Fn(&Sample) -> f64,
) -> Result<Itself> {
    let both = [SERVER_PROCESSOR, LOAD_PROCESSOR];
    let wide = bench.test_bed.start_comity(&both, false)?;
    let narrow = bench.target("comity").context("no comity")?;
    let mut itself = Itself { base: Vec::new(), comity: Vec::new() };
    let mut one = Prepared::new(narrow, operation)?;
    let mut two = Prepared::new(&wide, operation)?;
    for _ in 0..bench.rounds {
        itself.base.push(figure(&one.sample(bench, narrow)?));
        process::pin(None, &both)?;
        let sample = two.sample(bench, &wide);
        process::pin(None, &[LOAD_PROCESSOR])?;
        itself.comity.push(figure(&sample?));
    }
    Ok(itself)
}

/// The directory of [`HUGE_FILES`] files.
const HUGE: &str = "huge";

/// GETATTR of all files of a directory of 100,000, and of one of 1,000.
pub(super) fn huge_directory(bench: &Bench) -> Result<Itself> {
    make_huge(bench)?;
    let comity = bench.target("comity").context("no comity")?;
    let mut small = Prepared::new(comity, Operation::Getattr)?;
    let script = getattrs_in(comity, HUGE, &small.script)?;
    let mut huge = Prepared { script, client: Client::connect(comity.address, CONNECTIONS)? };
    against(bench, comity, &mut small, &mut huge)
}

/// The same for the minimal server. It has the 1,000 files open and asks for the others by name,
/// which shows the time of the kernel itself.
pub(super) fn huge_directory_raw(bench: &Bench) -> Result<Itself> {
    make_huge(bench)?;
    let raw = bench.target("raw").context("no raw")?;
    let mut small = Prepared::new(raw, Operation::Getattr)?;
    let script = baseline_server::attributes_by_name(HUGE, HUGE_FILES);
    let mut huge = Prepared { script, client: Client::connect(raw.address, CONNECTIONS)? };
    against(bench, raw, &mut small, &mut huge)
}

fn make_huge(bench: &Bench) -> Result<()> {
    let is_there = bench.test_bed.layout.root().join(HUGE).exists();
    if is_there { Ok(()) } else { bench.test_bed.layout.listing(HUGE, HUGE_FILES) }
}

/// GETATTR by 64 connections, and by 4.
pub(super) fn many_connections(bench: &Bench) -> Result<Itself> {
    const MANY: usize = 64;
    let comity = bench.target("comity").context("no comity")?;
    let mut few = Prepared::new(comity, Operation::Getattr)?;
    let client = Client::connect(comity.address, MANY)?;
    let mut many = Prepared { script: few.script.clone(), client };
    against(bench, comity, &mut few, &mut many)
}

/// KiB of resident memory of a connection that has made one call and is idle.
pub(super) fn idle_connection(bench: &Bench) -> Result<Itself> {
    let comity = bench.test_bed.start_comity(&[SERVER_PROCESSOR], false)?;
    let mut idle = connect_idle(&comity, FIRST_CONNECTIONS)?;
    let before = resting_kib(&comity)?;
    idle.extend(connect_idle(&comity, IDLE_CONNECTIONS)?);
    let grown = resting_kib(&comity)?.saturating_sub(before);
    Ok(Itself { base: Vec::new(), comity: vec![grown as f64 / IDLE_CONNECTIONS as f64] })
}

/// MiB of resident memory of a server that has answered MNT and nothing else.
pub(super) fn memory_at_start(bench: &Bench) -> Result<Itself> {
    let comity = bench.test_bed.start_comity(&[SERVER_PROCESSOR], false)?;
    let kib = resting_kib(&comity)?;
    Ok(Itself { base: Vec::new(), comity: vec![kib as f64 / 1024.0] })
}

/// Threads of such a server on two cores.
pub(super) fn threads(bench: &Bench) -> Result<Itself> {
    let comity = bench.test_bed.start_comity(&[SERVER_PROCESSOR, LOAD_PROCESSOR], false)?;
    let count = process::threads(comity.process())?;
    Ok(Itself { base: Vec::new(), comity: vec![count as f64] })
}

/// A load that is ready to run.
struct Prepared {
    script: CallTemplates,
    client: Client,
}

impl Prepared {
    fn new(target: &ServerProcess, operation: Operation) -> Result<Self> {
        let script = target.script(operation, &small())?;
        Ok(Self { script, client: Client::connect(target.address, CONNECTIONS)? })
    }

    fn sample(&mut self, bench: &Bench, target: &ServerProcess) -> Result<Sample> {
        Sample::take(target, &mut self.client, &self.script, bench.load(DEPTH))
    }
}

/// The costs of two loads of one server, in turn.
fn against(
    bench: &Bench,
    target: &ServerProcess,
    plain: &mut Prepared,
    other: &mut Prepared,
) -> Result<Itself> {
    let mut itself = Itself { base: Vec::new(), comity: Vec::new() };
    for _ in 0..bench.rounds {
        itself.base.push(plain.sample(bench, target)?.cost());
        itself.comity.push(other.sample(bench, target)?.cost());
    }
    Ok(itself)
}

/// GETATTR of each file of a directory; otherwise like `model`.
fn getattrs_in(
    target: &ServerProcess,
    directory: &str,
    model: &CallTemplates,
) -> Result<CallTemplates> {
    let mut caller = Caller::connect(target.address)?;
    let root = target.root().context("no root")?;
    let dir = caller.walk(root, directory)?;
    let pages = list(&mut caller, &dir)?;
    let files = pages.into_iter().flat_map(|page| page.entries);
    let files = files.filter(|entry| !entry.name.starts_with('.'));
    let handles: Vec<_> = files.filter_map(|entry| entry.handle).collect();
    let mut prober = Prober { caller: &mut caller, root: root.to_vec() };
    Ok(CallTemplates { templates: prober.getattrs_of(&handles)?, ..model.clone() })
}

fn connect_idle(target: &ServerProcess, count: usize) -> Result<Vec<Caller>> {
    let root = target.root().context("no root")?.to_vec();
    let connect = |_| {
        let mut caller = Caller::connect(target.address)?;
        Prober { caller: &mut caller, root: root.clone() }
            .getattrs_of(std::slice::from_ref(&root))?;
        Ok(caller)
    };
    (0..count).map(connect).collect()
}

fn resting_kib(target: &ServerProcess) -> Result<u64> {
    std::thread::sleep(Duration::from_millis(REST_MILLISECONDS));
    process::resident_kib(target.process())
}
