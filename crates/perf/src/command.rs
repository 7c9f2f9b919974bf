//! The command line of `comity-perf`.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use comity_bench::Operation;
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::load::{Client, Load, Stop};
use comity_bench::prober::Pages;
use comity_bench::prober::nfs3::Prober;
use comity_bench::process::{self, CpuTime};
use comity_remote::rpc::Caller;

use crate::baseline_server;
use crate::row_options::RowOptions;
use crate::{
    advice_check, ceph_cost, cluster_cost, cost_table, directory_cost, grants_cost, idmap_cost,
    instructions, load_model, migration_cost, pnfs_cost, state_cost, strangers, syscalls, tls_cost,
};

#[derive(Parser)]
#[command(name = "comity-perf")]
struct Arguments {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Subcommand)]
enum Tool {
    /// Measure, and print the table.
    Table(cost_table::Options),
    /// Count the system calls of steady loads.
    Syscalls(syscalls::Options),
    /// Count the instructions of single calls.
    Instructions(instructions::Options),
    /// Measure what range maps and cloaks cost.
    Identity(idmap_cost::Options),
    /// Measure what rights held by keys cost.
    Grants(grants_cost::Options),
    /// Measure what locks, delegations and opens cost, and how that grows.
    State(RowOptions),
    /// Measure what a listed client loses to hosts that no export is offered to.
    Strangers(strangers::Options),
    /// Compare the model of load with what calls cost while a resource is used.
    LoadModel(load_model::Options),
    /// Compare advice to move an export with what the move changes.
    Advice(RowOptions),
    /// Measure for how long nobody serves an export while it moves to another server.
    Migrate(RowOptions),
    /// Measure the calls that directory delegations save and cause.
    Directories(directory_cost::Options),
    /// Measure what parallel NFS costs, and what it gains.
    Pnfs(pnfs_cost::Options),
    /// Measure what small calls on a Ceph file system cost, beside nfs-ganesha.
    Ceph(RowOptions),
    /// Measure what the heads of a cluster cost etcd.
    Cluster(RowOptions),
    /// Measure what TLS costs.
    Tls(tls_cost::Options),
    /// Make the tree of files that is measured.
    Layout {
        /// An empty directory.
        directory: PathBuf,
    },
    /// Serve a tree with the minimal server.
    RawServer {
        /// The tree.
        directory: PathBuf,
        /// The port on loopback.
        #[arg(long)]
        port: u16,
    },
    /// Load a server that is running on a tree.
    Load(LoadArguments),
}

#[derive(Args)]
struct LoadArguments {
    /// The server.
    address: SocketAddr,
    /// The tree it serves, exported under this path.
    directory: PathBuf,
    /// The operation to call.
    #[arg(long, default_value = "getattr")]
    operation: Operation,
    /// The number of connections.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// The number of outstanding calls on each connection.
    #[arg(long, default_value_t = 8)]
    depth: usize,
    /// The duration in seconds.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The server's process, for its processor time.
    #[arg(long)]
    process: Option<u32>,
    /// The address where MOUNT is served, if it is another.
    #[arg(long)]
    mount: Option<SocketAddr>,
    /// The server is the minimal one.
    #[arg(long)]
    raw: bool,
}

/// Runs the command of the command line.
#[must_use]
pub fn main() -> ExitCode {
    match run(Arguments::parse().tool) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("comity-perf: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(tool: Tool) -> Result<ExitCode> {
    match tool {
        Tool::Table(options) => return Ok(judge(options.rows.check, cost_table::run(&options)?)),
        Tool::Syscalls(options) => return Ok(judge(options.check, syscalls::run(&options)?)),
        Tool::Instructions(options) => {
            return Ok(judge(options.check, instructions::run(&options)?));
        }
        Tool::State(options) => return Ok(judge(options.check, state_cost::run(&options)?)),
        Tool::Strangers(options) => {
            return Ok(judge(options.rows.check, strangers::run(&options)?));
        }
        Tool::Directories(options) => {
            return Ok(judge(options.rows.check, directory_cost::run(&options)?));
        }
        Tool::LoadModel(options) => {
            return Ok(judge(options.rows.check, load_model::run(&options)?));
        }
        Tool::Advice(options) => return Ok(judge(options.check, advice_check::run(&options)?)),
        Tool::Migrate(options) => return Ok(judge(options.check, migration_cost::run(&options)?)),
        Tool::Pnfs(options) => return Ok(judge(options.rows.check, pnfs_cost::run(&options)?)),
        Tool::Grants(options) => return Ok(judge(options.check, grants_cost::run(&options)?)),
        Tool::Cluster(options) => return Ok(judge(options.check, cluster_cost::run(&options)?)),
        Tool::Ceph(options) => return Ok(judge(options.check, ceph_cost::run(&options)?)),
        Tool::Tls(options) => return Ok(judge(options.check, tls_cost::run(&options)?)),
        Tool::Identity(options) => return Ok(judge(options.check, idmap_cost::run(&options)?)),
        Tool::Layout { directory } => FixtureTree::build(&directory).map(|_| ())?,
        Tool::RawServer { directory, port } => {
            let listener = TcpListener::bind(("127.0.0.1", port)).context("bind")?;
            baseline_server::serve(&FixtureTree::at(&directory), listener)?;
        }
        Tool::Load(arguments) => load(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn judge(check: bool, good: bool) -> ExitCode {
    if check && !good { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn load(arguments: &LoadArguments) -> Result<()> {
    let layout = FixtureTree::at(&arguments.directory);
    let created = format!("created-{}", std::process::id());
    layout.directory(&created)?;
    let pages = Pages { created, listed: vec![FixtureTree::SMALL.to_owned()] };
    let script = if arguments.raw {
        baseline_server::script(&layout, arguments.operation, &pages)?
    } else {
        let mount = arguments.mount.unwrap_or(arguments.address);
        let root = Caller::connect(mount)?.mount(layout.root())?;
        let mut caller = Caller::connect(arguments.address)?;
        Prober { caller: &mut caller, root }.script(arguments.operation, &pages)?
    };
    process::pin(None, &[crate::server_process::LOAD_PROCESSOR])?;
    let mut client = Client::connect(arguments.address, arguments.connections)?;
    let stop = Stop::After(Duration::from_secs_f64(arguments.seconds));
    let own = std::process::id();
    let server = arguments.process.unwrap_or(own);
    let before = (CpuTime::of(server)?, CpuTime::of(own)?);
    let outcome = client.run(&script, Load { depth: arguments.depth, stop })?;
    let used = CpuTime::of(server)?.since(&before.0);
    let own = CpuTime::of(own)?.since(&before.1);
    let units = outcome.units as f64;
    println!(
        "{}: {:.0} /s, server {:.3} us, load {:.3} us each; p50 {:.1} us, p99 {:.1} us a call",
        arguments.operation,
        units / outcome.seconds,
        used as f64 / 1e3 / units,
        own as f64 / 1e3 / units,
        outcome.latency.value_at_quantile(0.5) as f64 / 1e3,
        outcome.latency.value_at_quantile(0.99) as f64 / 1e3,
    );
    Ok(())
}
