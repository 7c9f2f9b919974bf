//! Tests with a real Linux kernel NFS client: a guest in User-Mode Linux (Debian's package
//! `user-mode-linux`) mounts a server that runs here, works in the mount, and what it has done is
//! compared with the files on the disk.
//!
//! Each test has a [`network`] of its own, a [`server`], one or two [`guest`]s and a folder under
//! `target/kernel`. Variants named `-kill` kill the server with SIGKILL every few seconds.

mod ground;
mod guest;
mod needs;
mod network;
mod preload;
mod server;
mod tests;
mod tree;
mod trial;
mod wishes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};

pub(crate) use server::Peer;
use tests::Test;
use trial::Setting;

/// Commands for the kernel client tests.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Say which tests there are.
    List,
    /// Run these, or all.
    Run(Run),
    /// Boot one guest with an empty folder mounted on /mnt/nfs, and a shell on this terminal.
    Shell {
        /// The server to test.
        #[arg(long, value_enum, default_value = "comity")]
        server: Peer,
    },
}

/// Options of a run.
#[derive(Args)]
pub(crate) struct Run {
    /// Names of tests; all if none is given.
    names: Vec<String>,
    /// The server to test.
    #[arg(long, value_enum, default_value = "comity")]
    server: Peer,
    /// Without names, run only the tests that `cargo xtask test` runs.
    #[arg(long)]
    core: bool,
    /// Number of tests at once; each takes about one processor.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Keep the tests' folders in target/kernel after success too.
    #[arg(long)]
    keep: bool,
    /// The program `comity` to test, built already; otherwise it is built from these sources.
    #[arg(long)]
    program: Option<PathBuf>,
}

impl Run {
    /// All tests against the server of this repository.
    pub(crate) fn all() -> Self {
        let names = Vec::new();
        Self { names, server: Peer::Comity, core: false, jobs: 2, keep: false, program: None }
    }

    /// The tests among them that `cargo xtask test` runs.
    pub(crate) fn core() -> Self {
        Self { core: true, ..Self::all() }
    }
}

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// Tests that failed.
    pub(crate) failed: usize,
    /// Tests that could not run, and why.
    pub(crate) skipped: Vec<(&'static str, String)>,
    /// Tests that are not of the core.
    pub(crate) left: Vec<&'static str>,
}

/// Does what the command line says.
///
/// # Errors
/// If guests cannot be had here, or a name is no test's.
pub(crate) fn command(root: &Path, command: &Command) -> Result<ExitCode> {
    match command {
        Command::List => {
            for test in tests::ALL {
                let core = if test.is_core() { "core" } else { "" };
                println!("{:14} {core:4}  {}", test.name, test.about);
            }
        }
        Command::Run(options) => {
            let tally = run(root, options)?;
            if let Some((_, why)) = tally.skipped.first() {
                bail!("{} tests cannot run: {why}", tally.skipped.len());
            }
            println!("kernel: {} passed, {} failed", tally.passed, tally.failed);
            return Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Shell { server } => trial::shell(&setting(root, *server, (true, None))?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs tests, a line for each as it ends.
///
/// # Errors
/// If a name is no test's, or the server cannot be built.
pub(crate) fn run(root: &Path, options: &Run) -> Result<Tally> {
    let mut chosen = choose(&options.names)?;
    let mut left = Vec::new();
    if options.core && options.names.is_empty() {
        left.extend(chosen.extract_if(.., |test| !test.is_core()).map(|test| test.name));
    }
    if let Some(why) = needs::missing() {
        let skipped = chosen.iter().map(|test| (test.name, why.clone())).collect();
        return Ok(Tally { skipped, left, ..Tally::default() });
    }
    if let Some(doubt) = ground::doubt(root)? {
        println!("kernel: note: {doubt}");
    }
    if chosen.iter().any(|test| test.name.starts_with("fsx")) {
        crate::tools::install(root, "fsx", "0.3.2")?;
    }
    let setting = setting(root, options.server, (options.keep, options.program.as_deref()))?;
    let queue = Mutex::new(chosen.into_iter());
    let tally = Mutex::new(Tally { left, ..Tally::default() });
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| work_off(&setting, &queue, &tally));
        }
    });
    Ok(tally.into_inner().unwrap_or_default())
}

fn choose(names: &[String]) -> Result<Vec<&'static Test>> {
    for name in names {
        ensure!(
            tests::ALL.iter().any(|test| test.name == name),
            "no test `{name}`; see `cargo xtask kernel list`"
        );
    }
    let is_chosen = |test: &&Test| names.is_empty() || names.iter().any(|name| name == test.name);
    Ok(tests::ALL.iter().filter(is_chosen).collect())
}

fn work_off(
    setting: &Setting,
    queue: &Mutex<impl Iterator<Item = &'static Test>>,
    tally: &Mutex<Tally>,
) {
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    while let Some(test) = next() {
        let start = Instant::now();
        let verdict = trial::run(setting, test);
        let seconds = start.elapsed().as_secs_f32();
        let Ok(mut tally) = tally.lock() else { return };
        match verdict {
            Ok(note) => {
                tally.passed += 1;
                println!("kernel: {:14} ok     {seconds:6.1} s  {note}", test.name);
            }
            Err(error) => {
                tally.failed += 1;
                println!("kernel: {:14} FAILED {seconds:6.1} s\n{error:#}", test.name);
            }
        }
    }
}

/// Builds the server, if it is not given, and says where it is.
fn setting(root: &Path, peer: Peer, (keep, given): (bool, Option<&Path>)) -> Result<Setting> {
    if peer == Peer::Comity && given.is_none() {
        crate::tools::cargo(
            root,
            &["build", "--quiet", "--locked", "--release", "--bin", "comity"],
        )?;
    }
    let program = match given {
        Some(program) => std::path::absolute(program)?,
        None => root.join("target/release/comity"),
    };
    let preload = preload::build(root)?;
    Ok(Setting { root: root.to_path_buf(), peer, program, preload, keep })
}
