//! Tests with a real Linux kernel NFS client: a guest in User-Mode Linux (Debian's package
//! `user-mode-linux`) mounts a server that runs on this machine and works in the mount; the result
//! is compared with the files on the disk.
//!
//! The guest boots the installed kernel or a newer one of [`kernels`]. Each test has a [`network`]
//! of its own, a [`server`], one or more [`guest`]s and a folder under `target/kernel`. Variants
//! named `-kill` kill the server with SIGKILL every few seconds.

mod ceph;
mod data_servers;
mod ground;
mod guest;
mod host;
mod kernels;
mod keys;
mod needs;
mod network;
mod other_server;
mod preload;
mod server;
mod tests;
pub(crate) mod tree;
mod trial;
mod wishes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use kernels::Images;
pub(crate) use kernels::Kernel;
use keys::Xprtsec;
pub(crate) use server::Peer;
use tests::Test;
use trial::Setting;

use crate::work_off::work_off;

/// Lines of the story of a failed test that the sum of a run repeats.
const ENDING_LINES: usize = 30;

/// Commands for the kernel client tests.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the tests.
    List,
    /// Run some tests, or all.
    Run(Run),
    /// Boot one guest with an empty folder mounted on /mnt/nfs, and a shell on this terminal.
    Shell {
        /// The server to test.
        #[arg(long, value_enum, default_value = "comity")]
        server: Peer,
        /// The kernel to boot; the installed one if none is given.
        #[arg(long, value_enum)]
        kernel: Option<Kernel>,
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
    /// Boot this kernel, and leave out tests that need another one. It is fetched from Debian
    /// once and kept in target/guests, or in the folder that COMITY_GUESTS names.
    #[arg(long, value_enum)]
    kernel: Option<Kernel>,
    /// Secure all connections by TLS (RFC 9289), with a key of its own for each host. Without
    /// names, run the tests of NFSv4.2; without a kernel, boot Linux 6.12.
    #[arg(long, value_enum, default_missing_value = "mtls")]
    #[arg(num_args = 0..=1, require_equals = true)]
    tls: Option<Xprtsec>,
    /// Without names, run only the tests that `cargo xtask test` runs.
    #[arg(long)]
    core: bool,
    /// Number of tests at once; each takes about one processor.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Keep the tests' folders in target/kernel after success too.
    #[arg(long)]
    keep: bool,
    /// The program `comity` to test; without it, it is built from these sources.
    #[arg(long)]
    program: Option<PathBuf>,
}

impl Run {
    /// All tests, against the server of this repository.
    pub(crate) fn all() -> Self {
        Self {
            names: Vec::new(),
            server: Peer::Comity,
            kernel: None,
            tls: None,
            core: false,
            jobs: 2,
            keep: false,
            program: None,
        }
    }

    /// Selects all tests, those that need another kernel excepted, to run on this kernel.
    pub(crate) fn on(kernel: Kernel) -> Self {
        Self { kernel: Some(kernel), ..Self::all() }
    }

    /// All tests of NFSv4.2 over TLS, with a key of its own for each host.
    pub(crate) fn over_tls() -> Self {
        Self { tls: Some(Xprtsec::Mtls), ..Self::all() }
    }

    /// One test.
    pub(crate) fn of(name: &str) -> Self {
        Self { names: vec![name.to_owned()], ..Self::all() }
    }

    /// The tests that `cargo xtask test` runs, of this program.
    pub(crate) fn core(program: PathBuf) -> Self {
        Self { core: true, program: Some(program), ..Self::all() }
    }

    /// The kernel that the guests of a test boot.
    fn kernel_of(&self, test: &Test) -> Kernel {
        test.kernel.unwrap_or_else(|| self.kernel())
    }

    /// The kernel that the guests of most tests boot.
    fn kernel(&self) -> Kernel {
        let usual = if self.tls.is_some() { Kernel::Linux6_12 } else { Kernel::Installed };
        self.kernel.unwrap_or(usual)
    }

    /// Returns the reason why a test cannot run with these options, if it cannot.
    fn obstacle(&self, test: &Test) -> Option<String> {
        let kernel = self.kernel_of(test);
        if (self.kernel.is_some() || self.tls.is_some()) && kernel != self.kernel() {
            return Some(format!("needs Linux {}", kernel.name()));
        }
        let is_mixed = self.tls.is_some() && !test.takes_tls;
        is_mixed.then(|| "has connections that are not to be secured".to_owned())
    }

    /// Returns whether a test runs if no names are given.
    fn takes(&self, test: &Test) -> bool {
        let is_of_version = self.tls.is_none() || test.version.starts_with("4.2");
        is_of_version && self.obstacle(test).is_none()
    }
}

/// The result of a run of tests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// Tests that failed, with the ends of their stories.
    pub(crate) failed: Vec<(&'static str, String)>,
    /// Tests that could not run, with the reasons.
    pub(crate) skipped: Vec<(&'static str, String)>,
    /// Tests that are not in the core.
    pub(crate) left: Vec<&'static str>,
}

/// Runs the subcommand of the command line.
///
/// # Errors
/// If guests cannot run on this machine, or a name is not that of a test.
pub(crate) fn command(root: &Path, command: &Command) -> Result<ExitCode> {
    match command {
        Command::List => {
            for test in tests::ALL {
                let core = if test.is_core() { "core" } else { "" };
                println!("{:16} {core:4}  {}", test.name, test.about);
            }
        }
        Command::Run(options) => {
            let tally = run(root, options)?;
            for (name, reason) in &tally.skipped {
                println!("kernel: {name:16} cannot run: {reason}");
            }
            println!("kernel: {} passed, {} failed", tally.passed, tally.failed.len());
            let is_complete = tally.failed.is_empty() && tally.skipped.is_empty();
            return Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Shell { server, kernel } => {
            let options = Run { server: *server, kernel: *kernel, keep: true, ..Run::all() };
            let images = Images::gather(root, [options.kernel()].into_iter());
            trial::shell(&setting(root, &options, images)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs tests; prints a line for each as it ends.
///
/// # Errors
/// If a name is not that of a test, or the server cannot be built.
pub(crate) fn run(root: &Path, options: &Run) -> Result<Tally> {
    let mut chosen = choose(options)?;
    let mut tally = Tally::default();
    if options.core && options.names.is_empty() {
        tally.left.extend(chosen.extract_if(.., |test| !test.is_core()).map(|test| test.name));
    }
    if let Some(why) = needs::missing() {
        tally.skipped = chosen.iter().map(|test| (test.name, why.clone())).collect();
        return Ok(tally);
    }
    if let Some(why) = chosen.iter().any(|test| test.on_ceph).then(ceph::missing).flatten() {
        let cannot = chosen.extract_if(.., |test| test.on_ceph);
        tally.skipped.extend(cannot.map(|test| (test.name, why.clone())));
    }
    let images = Images::gather(root, chosen.iter().map(|test| options.kernel_of(test)));
    chosen.retain(|test| match images.get(options.kernel_of(test)) {
        Ok(_) => true,
        Err(reason) => {
            tally.skipped.push((test.name, reason.to_string()));
            false
        }
    });
    if chosen.is_empty() {
        return Ok(tally);
    }
    if let Some(doubt) = ground::doubt(root)? {
        println!("kernel: note: {doubt}");
    }
    if chosen.iter().any(|test| test.name.starts_with("fsx")) {
        crate::tools::install(root, "fsx", "0.3.2")?;
    }
    let setting = setting(root, options, images)?;
    Ok(perform(&setting, options.jobs, chosen, tally))
}

/// Runs the chosen tests, `jobs` at a time.
fn perform(setting: &Setting, jobs: usize, tests: Vec<&'static Test>, mut tally: Tally) -> Tally {
    for (name, done) in work_off(jobs, tests, |test| (test.name, perform_one(setting, test))) {
        match done {
            Ok(()) => tally.passed += 1,
            Err(story) => tally.failed.push((name, story)),
        }
    }
    tally
}

fn choose(options: &Run) -> Result<Vec<&'static Test>> {
    let names = &options.names;
    for name in names {
        let test = tests::ALL.iter().find(|test| test.name == name);
        let test =
            test.with_context(|| format!("no test `{name}`; see `cargo xtask kernel list`"))?;
        if let Some(obstacle) = options.obstacle(test) {
            bail!("{name} {obstacle}");
        }
    }
    let is_named = |test: &Test| names.iter().any(|name| name == test.name);
    let is_chosen =
        |test: &&Test| if names.is_empty() { options.takes(test) } else { is_named(test) };
    Ok(tests::ALL.iter().filter(is_chosen).collect())
}

/// Runs a test, and prints a line when it has ended; returns the end of its story if it failed.
fn perform_one(setting: &Setting, test: &Test) -> Result<(), String> {
    let start = Instant::now();
    let verdict = trial::run(setting, test);
    let seconds = start.elapsed().as_secs_f32();
    match &verdict {
        Ok(note) => println!("kernel: {:16} ok     {seconds:6.1} s  {note}", test.name),
        Err(error) => println!("kernel: {:16} FAILED {seconds:6.1} s\n{error:#}", test.name),
    }
    verdict.map(drop).map_err(|error| ending(&format!("{error:#}")))
}

/// The last lines of a story.
fn ending(story: &str) -> String {
    let lines: Vec<&str> = story.lines().collect();
    lines.get(lines.len().saturating_sub(ENDING_LINES)..).unwrap_or_default().join("\n    ")
}

/// Builds the server if it is not given; returns the settings of the run.
fn setting(root: &Path, options: &Run, images: Images) -> Result<Setting> {
    let peer = options.server;
    let given = options.program.as_deref();
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
    let (root, kernel) = (root.to_path_buf(), options.kernel());
    let (tls, keep) = (options.tls, options.keep);
    Ok(Setting { root, peer, program, images, kernel, tls, preload, keep })
}

#[cfg(test)]
mod options_of_a_run {
    use super::*;

    fn chosen(options: &Run) -> Vec<&'static str> {
        choose(options).unwrap().iter().map(|test| test.name).collect()
    }

    fn refusal(options: Run, name: &str) -> String {
        choose(&Run { names: vec![name.to_owned()], ..options }).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn a_test_that_needs_another_kernel_is_left_out_or_refused_by_its_name() {
        let names = chosen(&Run::on(Kernel::Linux7_2));
        assert!(names.contains(&"smoke-7.2") && names.contains(&"smoke-4.2"));
        assert!(!names.contains(&"smoke-6.12"));
        let refusal = refusal(Run::on(Kernel::Linux7_2), "smoke-6.12");
        assert_eq!(refusal, "smoke-6.12 needs Linux 6.12");
    }

    #[test]
    fn without_a_kernel_each_test_boots_the_one_that_it_needs() {
        assert_eq!(chosen(&Run::all()).len(), tests::ALL.len());
        let kernel = |name| {
            let test = tests::ALL.iter().find(|test| test.name == name).unwrap();
            Run::all().kernel_of(test)
        };
        assert_eq!(kernel("smoke-4.2"), Kernel::Installed);
        assert_eq!(kernel("smoke-7.2"), Kernel::Linux7_2);
    }

    #[test]
    fn over_tls_the_tests_of_one_version_run_that_can_be_secured() {
        let names = chosen(&Run::over_tls());
        assert!(names.contains(&"smoke-4.2") && names.contains(&"clients-4.2"));
        assert!(!names.contains(&"smoke") && !names.contains(&"mtls-6.12"));
        assert!(refusal(Run::over_tls(), "hosts").contains("has connections"));
        assert_eq!(Run::over_tls().kernel(), Kernel::Linux6_12);
    }
}
