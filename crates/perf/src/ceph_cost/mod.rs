//! Processor time of small calls on a Ceph file system, beside nfs-ganesha with FSAL_CEPH: both
//! serve one cluster of this machine in turn, under the same load.

mod cluster;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::load::{Load, Stop};
use comity_bench::prober::Pages;
use comity_bench::process;
use comity_bench::targets::{self, GaneshaBackEnd};
use comity_bench::{InSession, Operation, Stable};

use self::cluster::CephCluster;
use crate::cost_table::{Sample, Spread};
use crate::row_options::RowOptions;
use crate::server_process::{
    self, LOAD_PROCESSOR, Prepared, SERVER_PROCESSOR, ServerProcess, TestBed,
};

/// The highest ratio of the processor times (the aim of the design).
const RATIO_MOST: f64 = 0.5;

/// Rounds of a whole run and of a quick one.
const ROUNDS: (usize, usize) = (9, 3);

/// The length of a sample.
const SAMPLE: Duration = Duration::from_millis(600);

/// The connections, and the outstanding calls of each.
const LOAD: (usize, usize) = (4, 8);

/// The same for writes: comity leaves the attributes from before out of its reply if two calls
/// change a file at once, and each connection writes a file of its own.
const WRITING: (usize, usize) = (4, 1);

const KIB4: u32 = 4096;

/// The rows, with the calls that the processor time of a row is divided by.
const ROWS: &[(&str, Operation)] = &[
    ("NULL", Operation::Null),
    ("GETATTR", Operation::Getattr),
    ("LOOKUP", Operation::Lookup),
    ("ACCESS", Operation::Access),
    ("READ 4 KiB", Operation::Read(KIB4)),
    ("WRITE 4 KiB UNSTABLE", Operation::Write(KIB4, Stable::Unstable)),
    ("READDIRPLUS, an entry", Operation::Readdirplus),
    ("v4.1 SEQUENCE+PUTFH+GETATTR", Operation::InSession(InSession::Getattr)),
    ("v4.1 READ 4 KiB", Operation::InSession(InSession::Read(KIB4))),
    ("v4.1 OPEN, CLOSE", Operation::InSession(InSession::OpenClose)),
];

/// Measures and prints; returns whether all rows reach the aim.
///
/// # Errors
/// A server or the cluster does not start, or a call is not answered as it must be.
pub fn run(options: &RowOptions) -> Result<bool> {
    if !cluster::is_installed() {
        println!("skipped: Ceph is not installed (Debian: ceph-mon, ceph-osd, ceph-mds)");
        return Ok(true);
    }
    let is_inside = targets::enter_namespace()?;
    ensure!(is_inside, "this takes root, for a network of its own");
    let test_bed = TestBed::make(&options.subject)?;
    let cluster = CephCluster::with_tree(&test_bed.work, test_bed.layout.root())?;
    let servers = start(&test_bed, &cluster)?;
    process::pin(None, &[LOAD_PROCESSOR])?;
    println!(
        "{:28} {:>18} {:>18} {:>18}",
        "processor time, us a call", "comity", "ganesha", "ratio"
    );
    let mut is_met = true;
    for (name, operation) in ROWS.iter().filter(|(name, _)| options.is_wanted(name)) {
        is_met &= measure(&servers, (name, *operation), options.quick).context(*name)?;
    }
    drop(servers);
    drop(cluster);
    Ok(is_met)
}

/// Starts the servers: comity, and ganesha if it is there.
fn start(test_bed: &TestBed, cluster: &CephCluster) -> Result<Vec<ServerProcess>> {
    let (tree, configuration) = (test_bed.layout.root().display(), cluster.configuration());
    let exported = format!("sync,ceph={tree},ceph_conf={}", configuration.display());
    let mut servers = vec![test_bed.start_comity_exporting(&[SERVER_PROCESSOR], &exported, &[])?];
    let back_end = GaneshaBackEnd::Ceph { configuration };
    if back_end.is_installed() {
        let (layout, work) = (&test_bed.layout, &test_bed.work);
        servers.push(server_process::start_ganesha_on(
            (layout, work),
            back_end,
            &[SERVER_PROCESSOR],
        )?);
    } else {
        println!("skipped: ganesha, because nfs-ganesha, nfs-ganesha-ceph or rpcbind is missing");
    }
    Ok(servers)
}

/// Measures a row and prints it; returns whether it reaches the aim.
fn measure(
    servers: &[ServerProcess],
    (name, operation): (&str, Operation),
    quick: bool,
) -> Result<bool> {
    let rounds = if quick { ROUNDS.1 } else { ROUNDS.0 };
    let pages = Pages { created: String::new(), listed: vec![FixtureTree::SMALL.to_owned()] };
    let load = if matches!(operation, Operation::Write(..)) { WRITING } else { LOAD };
    let mut prepared = Vec::new();
    for server in servers {
        prepared.push(server.prepare(operation, &pages, load)?);
    }
    let mut costs = vec![Vec::new(); servers.len()];
    for _ in 0..rounds {
        for (number, server) in servers.iter().enumerate() {
            let Prepared { script, client, .. } = &mut prepared[number];
            let load = Load { depth: load.1, stop: Stop::After(SAMPLE) };
            costs[number].push(Sample::take(server, client, script, load)?.cost());
        }
    }
    let quotients: Vec<f64> = match &costs[..] {
        [comity, ganesha] => comity.iter().zip(ganesha).map(|(own, other)| own / other).collect(),
        _ => Vec::new(),
    };
    let mut columns: Vec<String> = costs.iter().map(|costs| text(costs)).collect();
    columns.push(text(&quotients));
    let ratio = Spread::of(&quotients).map(|spread| spread.median);
    let is_met = ratio.is_none_or(|ratio| ratio <= RATIO_MOST);
    let columns: String = columns.iter().map(|column| format!(" {column:>18}")).collect();
    println!("{name:28}{columns}: {}", if is_met { "met" } else { "MISSED" });
    Ok(is_met)
}

/// The median, and the ends.
fn text(figures: &[f64]) -> String {
    let Some(Spread { median, least, greatest }) = Spread::of(figures) else {
        return String::new();
    };
    format!("{median:.2} ({least:.2}-{greatest:.2})")
}
