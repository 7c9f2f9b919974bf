//! Conformance of NFSv4 by pynfs (github.com/kofemann/pynfs), which must be on this machine: each
//! group of its tests runs against a server of its own, and the tests that do not pass are compared
//! with `docs/conformance.toml`. Any difference, better or worse, is a failure. The suites on a
//! mount of the client are judged in the same way.

mod client;
mod known;
mod mended;
mod report;
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::known::Known;
use self::report::Report;
use self::server::Server;

/// Options of the runs.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder of pynfs, built by its `setup.py build`.
    #[arg(long, required_unless_present = "client")]
    pynfs: Option<PathBuf>,
    /// The Python that has its modules (ply, xdrlib3).
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The program `comity` to test; without it, it is built from these sources.
    #[arg(long)]
    program: Option<PathBuf>,
    #[command(flatten)]
    client: client::Options,
    /// Only these runs; all without any names.
    names: Vec<String>,
}

/// A run of pynfs: its name, the lease time of its server, its folder, its options, and the tests
/// that it runs.
struct Run {
    name: &'static str,
    lease_seconds: u32,
    folder: &'static str,
    options: &'static [&'static str],
    tests: &'static [&'static str],
}

/// Lease time in seconds: some tests wait for several leases, and some need ten seconds for their
/// work.
const LEASE_SECONDS: u32 = 20;

/// Lease time in seconds for tests that make a thousand clients, which takes minutes. The first
/// client is silent meanwhile and has no state, so that it would be forgotten after a shorter
/// lease.
const LEASE_SECONDS_OF_MANY: u32 = 180;

/// The runs leave out tests that need Kerberos, pNFS or a server with referrals, and tests that
/// pynfs cannot run by itself.
const RUNS: [Run; 6] = [
    Run {
        name: "4.0",
        lease_seconds: LEASE_SECONDS,
        folder: "nfs4.0",
        options: &[],
        tests: &["everything", "nogss", "nofslocations", "noreboot", "nospoof", "noREBT7"],
    },
    Run {
        name: "4.0-reboot",
        lease_seconds: LEASE_SECONDS,
        folder: "nfs4.0",
        options: &[],
        tests: &["reboot", "REBT7"],
    },
    Run {
        name: "4.1",
        lease_seconds: LEASE_SECONDS,
        folder: "nfs4.1",
        options: &["--minorversion=1"],
        tests: &["everything", "nopnfs", "noflex", "noblock", "noreboot", "noGETLAYOUT100"],
    },
    Run {
        name: "4.2",
        lease_seconds: LEASE_SECONDS,
        folder: "nfs4.1",
        options: &["--minorversion=2"],
        tests: &["everything", "nopnfs", "noflex", "noblock", "noreboot", "noGETLAYOUT100"],
    },
    Run {
        name: "4.1-reboot",
        lease_seconds: LEASE_SECONDS,
        folder: "nfs4.1",
        options: &["--minorversion=1"],
        tests: &["reboot", "noREBT2c", "noREBT3c", "noREBT4c"],
    },
    Run {
        name: "4.1-reboot-many",
        lease_seconds: LEASE_SECONDS_OF_MANY,
        folder: "nfs4.1",
        options: &["--minorversion=1"],
        tests: &["REBT2c", "REBT3c", "REBT4c"],
    },
];

/// Runs the conformance tests of the command line.
///
/// # Errors
/// If something cannot be built or run, or a name is not that of a run.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    match &options.pynfs {
        Some(pynfs) => server_command(root, options, pynfs),
        None => client::command(root, &options.client, program(root, options)?, &options.names),
    }
}

/// Returns the program to test; builds it if it is not given.
fn program(root: &Path, options: &Options) -> Result<PathBuf> {
    if let Some(program) = &options.program {
        return Ok(std::path::absolute(program)?);
    }
    crate::tools::cargo(root, &["build", "--locked", "--package", "comity-cli"])?;
    Ok(root.join("target/debug/comity"))
}

fn server_command(root: &Path, options: &Options, pynfs: &Path) -> Result<ExitCode> {
    for name in &options.names {
        ensure!(RUNS.iter().any(|run| run.name == name), "no run `{name}`");
    }
    let program = program(root, options)?;
    let known = Known::read(&root.join("docs/conformance.toml"))?;
    let conformance = root.join("target/conformance");
    let pynfs = mended::mended(pynfs, &conformance)?;
    let python = program_path(&options.python)?;
    let mut same = true;
    let chosen =
        |run: &&Run| options.names.is_empty() || options.names.iter().any(|n| n == run.name);
    for run in RUNS.iter().filter(chosen) {
        let folder = conformance.join(run.name);
        let report = perform(run, (&python, &pynfs), &program, &folder)?;
        println!("{}: {report}; log: {}", run.name, folder.join("pynfs.log").display());
        let differences = known.differences(run.name, &report);
        differences.iter().for_each(|difference| println!("  {difference}"));
        same &= differences.is_empty();
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the path of a program absolute, so that it is found from any folder. Links are not
/// resolved, because a Python with modules of its own may be one.
fn program_path(program: &Path) -> Result<PathBuf> {
    let is_path = program.components().nth(1).is_some();
    Ok(if is_path { std::path::absolute(program)? } else { program.to_path_buf() })
}

fn perform(
    run: &Run,
    (python, pynfs): (&Path, &Path),
    program: &Path,
    folder: &Path,
) -> Result<Report> {
    let server = Server::start(program, folder, run.lease_seconds)?;
    let log = std::fs::File::create(folder.join("pynfs.log"))?;
    let status = Command::new(python)
        .arg("testserver.py")
        .arg(server.url())
        .args(["--maketree", "--rundeps", "--showomit"])
        .arg(format!("--usespecial={}", server::SPECIAL))
        .arg(format!("--serverhelper={}", server.helper().display()))
        .arg(format!("--serverhelperarg={}", folder.display()))
        .args(run.options)
        .args(run.tests)
        .current_dir(pynfs.join(run.folder))
        .stdout(log.try_clone()?)
        .stderr(log)
        .status();
    status.with_context(|| format!("run {}", python.display()))?;
    Report::read(&folder.join("pynfs.log"))
}
