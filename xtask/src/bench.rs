//! `cargo xtask bench`: builds the programs to measure, as a release, and measures them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::kernel;
use crate::tools::cargo;

mod documents;

/// The measurements to make; without any, the table of operations.
#[derive(Args)]
pub(crate) struct Options {
    /// Measure for one minute instead of four.
    #[arg(long)]
    quick: bool,
    /// Only the rows whose names contain one of these, e.g. `read,GETATTR`.
    #[arg(long)]
    rows: Option<String>,
    /// The peer to measure beside: `ganesha` or `none`.
    #[arg(long, default_value = "ganesha")]
    against: String,
    /// Also write the figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Exit with 1 if a figure is worse than its bound.
    #[arg(long)]
    check: bool,
    /// Count system calls instead.
    #[arg(long)]
    syscalls: bool,
    /// Count instructions instead, and compare with docs/instructions.toml.
    #[arg(long, conflicts_with = "syscalls")]
    instructions: bool,
    /// Measure the cost of range maps and cloaks instead; with --quick only the rows with a goal.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions"])]
    identity: bool,
    /// Measure what locks, delegations and opens cost instead, and how the cost grows with their
    /// number.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity"])]
    state: bool,
    /// Measure what a listed client loses to hosts that no export is offered to instead, as root;
    /// exits with 1 if it loses more than the bound.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state"])]
    strangers: bool,
    /// Measure what rights held by keys cost instead, next to the figures of DisCFS (2003).
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state",
          "strangers"])]
    grants: bool,
    /// Measure what TLS costs instead, next to stunnel and to the cipher alone.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants"])]
    tls: bool,
    /// Compare the model of load with the measured times of calls while each resource is used, as
    /// root.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants", "tls"])]
    load: bool,
    /// Write a plot for each resource into this folder (with --load).
    #[arg(long, value_name = "DIR", requires = "load")]
    plots: Option<PathBuf>,
    /// Measure for how long nobody serves an export instead, while it moves to another server of
    /// this machine with the state of a client.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants", "tls", "load"])]
    migrate: bool,
    /// Compare advice to move an export with what the move changes instead, in eleven cases of two
    /// servers of this machine, as root: 18 minutes, 6 with --quick; on a machine that does nothing
    /// else.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants", "tls", "load", "migrate"])]
    advice: bool,
    /// Count the calls that directory delegations save and cause instead, with a server and mounts
    /// of this machine; exits with 1 if a figure misses its bound.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants", "tls", "load", "migrate", "advice"])]
    directories: bool,
    /// Measure parallel NFS instead: layouts, the metadata server's part in data that clients move,
    /// data servers behind lines of their own, and small files; as root.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants", "tls", "load", "migrate", "advice", "directories"])]
    pnfs: bool,
    /// Measure the processor time of small calls on a Ceph file system instead, beside nfs-ganesha
    /// on the same cluster of this machine, as root.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants", "tls", "load", "migrate", "advice", "directories", "pnfs"])]
    ceph: bool,
    /// Measure what the heads of a cluster cost etcd instead, with heads and an etcd of this
    /// machine: the figures of docs/scale.md.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants", "tls", "load", "migrate", "advice", "directories", "pnfs", "ceph"])]
    cluster: bool,
    /// Count the calls of `comity mount` in the thirteen tests of 1998 instead, beside those of the
    /// kernel's client in the same guest, as root; exits with 1 if a figure misses its bound.
    #[arg(long, conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
          "grants", "tls", "load", "migrate", "advice", "directories", "pnfs", "ceph",
          "cluster"])]
    client: bool,
    /// Take the runs of `comity bench` in docs/bench again instead, all of them or those named,
    /// e.g. `--docs local,servers`: 24 minutes at most, 8 with --quick; as root, on a machine that
    /// does nothing else.
    #[arg(long, value_name = "RUN,...", num_args = 0..=1, default_missing_value = "",
          value_delimiter = ',',
          conflicts_with_all = ["syscalls", "instructions", "identity", "state", "strangers",
                             "grants", "tls", "load", "migrate", "advice", "directories", "pnfs",
                             "ceph", "cluster", "client"])]
    docs: Option<Vec<String>>,
    /// Write the counts of instructions to that file.
    #[arg(long, requires = "instructions", conflicts_with = "check")]
    update: bool,
}

/// Does the measurements of the command line.
///
/// # Errors
/// If something cannot be built or run.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    if let Some(docs) = &options.docs {
        let only: Vec<String> = docs.iter().filter(|name| !name.is_empty()).cloned().collect();
        documents::take(root, &only, options.quick)?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.client {
        return kernel::command(root, &kernel::Command::Run(kernel::Run::of("bench-client")));
    }
    let mut build = vec!["build", "--release", "--locked", "--package", "comity-perf", "--bins"];
    if options.identity {
        build_without(root, "maps", &["--features", "keys"])?;
    }
    if options.grants {
        build_without(root, "keys", &["--features", "maps-and-cloaks"])?;
    }
    let in_process = options.instructions || options.identity || options.grants;
    build.extend(if in_process { &["--example", "instructions"][..] } else { &[] });
    if !in_process || options.grants {
        build.extend(["--package", "comity-cli"]);
    }
    cargo(root, &build)?;
    let mut program = Command::new(root.join("target/release/comity-perf"));
    program.args(arguments(options)).current_dir(root);
    let status = program.status().context("run comity-perf")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the program that is measured for comparison, which lacks one feature.
fn build_without(root: &Path, absent: &str, features: &[&str]) -> Result<()> {
    let build = ["build", "--release", "--locked", "--package", "comity-perf"];
    let without = ["--example", "instructions", "--no-default-features"];
    cargo(root, &[&build[..], &without, features].concat())?;
    let built = root.join("target/release/examples/instructions");
    let kept = root.join(format!("target/release/examples/instructions-without-{absent}"));
    std::fs::copy(built, kept).with_context(|| format!("keep the program without {absent}"))?;
    Ok(())
}

fn arguments(options: &Options) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |given: bool, word: &str| {
        if given {
            words.push(word.to_owned());
        }
    };
    add(options.instructions, "instructions");
    add(options.syscalls, "syscalls");
    add(options.identity, "identity");
    add(options.state, "state");
    add(options.strangers, "strangers");
    add(options.grants, "grants");
    add(options.tls, "tls");
    add(options.load, "load-model");
    add(options.migrate, "migrate");
    add(options.advice, "advice");
    add(options.directories, "directories");
    add(options.pnfs, "pnfs");
    add(options.ceph, "ceph");
    add(options.cluster, "cluster");
    add(options.update, "--update");
    let plots = options.plots.as_ref().map(|folder| format!("--plots={}", folder.display()));
    add(options.load && plots.is_some(), &plots.unwrap_or_default());
    let by_key = options.grants || options.tls;
    let by_row =
        options.state || options.strangers || options.load || options.migrate || options.advice;
    let with_rows =
        by_row || options.directories || options.pnfs || options.ceph || options.cluster;
    let growing = options.identity || with_rows || by_key;
    let table = !(growing || options.instructions || options.syscalls);
    add(table, "table");
    add(options.quick && (table || growing), "--quick");
    let rows = options.rows.as_deref();
    add(with_rows && rows.is_some(), &format!("--rows={}", rows.unwrap_or_default()));
    if table {
        add(true, &format!("--against={}", options.against));
        add(options.rows.is_some(), &format!("--rows={}", options.rows.as_deref().unwrap_or("")));
    }
    if table || options.directories || options.pnfs {
        let json = options.json.as_ref().map(|path| path.display().to_string());
        add(json.is_some(), &format!("--json={}", json.unwrap_or_default()));
    }
    add(options.check || options.strangers || options.directories, "--check");
    words
}
