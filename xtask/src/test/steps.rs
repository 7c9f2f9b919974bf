//! The steps in their order.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::tools::program;
use crate::{kernel, tidy};

use super::command::{judge, patient, run};
use super::verdict::Verdict;
use super::{Task, Trials, crashes, deny, executables, fuzz, mounts, packages};

/// The lane in which a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// The step runs before all others, which depend on it.
    First,
    /// Steps run one after the other: some of them measure time.
    Main,
    /// Steps run at low priority next to the main lane: the load does not change their results.
    Beside,
}

/// One step.
pub(super) struct Step {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// One line about its purpose.
    pub(super) about: &'static str,
    /// True if `--quick` leaves out the step.
    pub(super) slow: bool,
    /// The lane in which it runs.
    pub(super) lane: Lane,
    /// Runs it.
    pub(super) run: fn(&Task<'_>) -> Result<Verdict>,
}

/// Longest time of one run of cargo that builds everything, on a slow machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(40 * 60);

/// All steps.
pub(super) const STEPS: &[Step] = &[
    first("packages", "install the Debian packages the other steps need", packages::step),
    step("format", "rustfmt has nothing to change", |task| {
        let mut verdict = cargo(task.root, task.name, &["fmt", "--all", "--check"])?;
        // The fuzz targets are a workspace of their own.
        let fuzz = ["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"];
        verdict.add(cargo(task.root, &format!("{}-fuzz", task.name), &fuzz)?);
        Ok(verdict)
    }),
    step("clippy", "clippy has no warnings", |task| {
        let what = ["clippy", "--workspace", "--all-targets", "--locked", "--keep-going", "--"];
        let what = [&what[..], &["-D", "warnings"]].concat();
        cargo(task.root, task.name, &what)
    }),
    step("tidy", "floors, shape, doors, leftovers, cycles, words", |task| {
        let tidy = tidy::is_tidy(task.root)?;
        Ok(if tidy { Verdict::passed() } else { Verdict::failed("the list of findings is above") })
    }),
    step("tests", "unit, property, conformance and in-process client tests", executables::step),
    step("schedules", "concurrent clients of the state under random schedules", |task| {
        let what = ["test", "--locked", "--package", "comity-state", "--features", "schedules"];
        cargo(task.root, task.name, &[&what[..], &["--test", "schedules"]].concat())
    }),
    step("docs", "the documentation builds, private items too", |task| {
        let mut command = Command::new(program());
        command.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"]);
        let command = after_flags(command, "RUSTDOCFLAGS", "-D warnings");
        judge(task.root, task.name, command, PATIENCE)
    }),
    step("deny", "licences, bans and sources of the dependencies", deny_step),
    slow("kernel", "tests with a Linux kernel NFS client", Lane::Main, kernel_tests),
    slow(
        "client",
        "suites of other projects and kills of the program, on mounts",
        Lane::Main,
        |task| mounts::step(task.root, task.name, task.extent.mounts),
    ),
    slow("migrations", "kills of servers while an export moves between them", Lane::Main, |task| {
        crashes::step(task.root, task.name, task.extent.crashes)
    }),
    slow("fuzz", "each fuzz target for some seconds", Lane::Beside, fuzz::step),
    slow(
        "instructions",
        "the cost of hot paths, maps and cloaks in instructions",
        Lane::Beside,
        instructions,
    ),
];

/// Runs a step.
type RunStep = fn(&Task<'_>) -> Result<Verdict>;

const fn first(name: &'static str, about: &'static str, run: RunStep) -> Step {
    Step { name, about, slow: false, lane: Lane::First, run }
}

const fn step(name: &'static str, about: &'static str, run: RunStep) -> Step {
    Step { name, about, slow: false, lane: Lane::Main, run }
}

const fn slow(name: &'static str, about: &'static str, lane: Lane, run: RunStep) -> Step {
    Step { name, about, slow: true, lane, run }
}

/// A run of cargo that passes or fails as a whole.
fn cargo(root: &Path, name: &str, arguments: &[&str]) -> Result<Verdict> {
    let mut command = Command::new(program());
    command.args(arguments);
    judge(root, name, command, PATIENCE)
}

fn after_flags(mut command: Command, variable: &str, flags: &str) -> Command {
    let before = std::env::var(variable).unwrap_or_default();
    command.env(variable, format!("{before} {flags}").trim());
    command
}

fn deny_step(task: &Task<'_>) -> Result<Verdict> {
    let installed = Command::new(program()).args(["deny", "--version"]).output();
    if !installed.is_ok_and(|done| done.status.success()) {
        return deny::check(task.root);
    }
    let what = ["deny", "--offline", "check", "licenses", "bans", "sources"];
    cargo(task.root, task.name, &what)
}

fn kernel_tests(task: &Task<'_>) -> Result<Verdict> {
    let runs = match task.extent.trials {
        Trials::Core => vec![kernel::Run::core(executables::comity(task.root, task.name)?)],
        Trials::All => vec![kernel::Run::all(), kernel::Run::over_tls()],
        Trials::On(kernel) => vec![kernel::Run::on(kernel)],
    };
    let mut verdict = Verdict::default();
    for run in runs {
        verdict.add(trials(task.root, &run)?);
    }
    Ok(verdict)
}

fn trials(root: &Path, run: &kernel::Run) -> Result<Verdict> {
    let tally = kernel::run(root, run)?;
    let names = |tests: &[&str]| tests.iter().map(ToString::to_string).collect();
    let with_reasons = |tests: &[(&str, String)]| {
        tests.iter().map(|(test, why)| format!("{test}: {why}")).collect()
    };
    Ok(Verdict {
        passed: tally.passed,
        failed: with_reasons(&tally.failed),
        skipped: with_reasons(&tally.skipped),
        left: names(&tally.left),
        notes: Vec::new(),
    })
}

fn instructions(task: &Task<'_>) -> Result<Verdict> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(Verdict::skipped("valgrind is not installed"));
    }
    let mut verdict = measured(task.root, task.name, &["--instructions"])?;
    // These compare configurations with each other, so that no file with earlier figures is needed.
    let name = format!("{}-identity", task.name);
    verdict.add(measured(task.root, &name, &["--identity", "--quick"])?);
    Ok(verdict)
}

/// Lets `cargo xtask bench` check a measurement; if it cannot measure, the step is skipped.
fn measured(root: &Path, name: &str, what: &[&str]) -> Result<Verdict> {
    let mut command = patient(program());
    command.args(["run", "--quiet", "--package", "xtask", "--", "bench", "--check"]).args(what);
    let done = run(root, name, command, PATIENCE)?;
    if !done.success {
        return Ok(Verdict::failed(done.ending()));
    }
    let text = done.text();
    let skipped = text.lines().filter_map(|line| line.strip_prefix("skipped: "));
    let skipped: Vec<String> = skipped.map(|why| format!("{}: {why}", what.join(" "))).collect();
    Ok(Verdict { passed: usize::from(skipped.is_empty()), skipped, ..Verdict::default() })
}
