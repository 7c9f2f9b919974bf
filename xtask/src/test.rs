//! `cargo xtask test`: all checks and tests of the project, in one command that takes about an
//! hour on two processors; and `cargo xtask soak`, the same campaigns at full length.
//!
//! Every step runs, even if an earlier one fails. Its output is in `target/xtask/STEP.log`; here it
//! gets one line, and the end of its log if it failed. Steps whose results do not depend on the
//! load run at the same time as the others, at low priority. The output ends with the time of each
//! step and the names of the tests that were not run and of those that failed.

mod command;
mod crashes;
mod deny;
mod executables;
mod fuzz;
mod licence;
mod mounts;
mod packages;
mod steps;
mod verdict;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;

use crate::kernel;

use steps::{Lane, STEPS, Step};
use verdict::Verdict;

/// Options that choose steps.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only this step; may be given more than once.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Leave out the kernel client tests, the fuzz targets and the instruction counts.
    #[arg(long)]
    quick: bool,
    /// List the steps.
    #[arg(long)]
    list: bool,
}

/// Options of the long campaigns.
#[derive(Args)]
pub(crate) struct SoakOptions {
    /// Seconds of fuzzing for each target.
    #[arg(long, default_value_t = 600)]
    fuzz_seconds: u64,
    /// Give each target this number of inputs, however long that takes.
    #[arg(long, value_name = "N", conflicts_with = "fuzz_seconds")]
    fuzz_inputs: Option<u64>,
    /// Fuzz only this target; may be given more than once.
    #[arg(long, value_name = "TARGET")]
    fuzz_target: Vec<String>,
    /// Boot this kernel in the trials, and leave out those that need another one.
    #[arg(long, value_enum)]
    kernel: Option<kernel::Kernel>,
    /// Run only this campaign (kernel, client, migrations, fuzz); may be given more than once.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
}

/// Most characters of a line of the list of skipped tests.
const SKIPPED_CHARACTERS_MAX: usize = 200;

/// Trials with kernel clients.
#[derive(Debug, Clone, Copy)]
enum Trials {
    /// The trials that `cargo xtask test` runs.
    Core,
    /// All trials, those of NFSv4.2 over TLS too.
    All,
    /// All trials that run on this kernel.
    On(kernel::Kernel),
}

/// The part of a campaign that is run.
#[derive(Debug, Clone)]
struct Extent {
    /// The trials with kernel clients.
    trials: Trials,
    /// The fuzzing of each target.
    fuzzing: fuzz::Fuzzing,
    /// The part of the campaigns on mounts of the client.
    mounts: mounts::SuiteChoice,
    /// The number of servers that are killed while an export moves.
    crashes: crashes::CrashChoice,
}

/// The part of the campaigns that `cargo xtask test` runs.
const SHORT: Extent = Extent {
    trials: Trials::Core,
    fuzzing: fuzz::Fuzzing::SHORT,
    mounts: mounts::SuiteChoice::Short,
    crashes: crashes::CrashChoice::Few,
};

/// A step with the arguments of its run.
struct Task<'a> {
    root: &'a Path,
    name: &'static str,
    extent: &'a Extent,
}

/// The result of a step.
struct StepReport {
    name: &'static str,
    verdict: Verdict,
    seconds: f32,
}

/// Runs the chosen steps; the last line of the output is the sum.
///
/// # Errors
/// If a name is not that of a step.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    check_names(&options.only)?;
    if options.list {
        STEPS.iter().for_each(|step| println!("{:12} {}", step.name, step.about));
        return Ok(ExitCode::SUCCESS);
    }
    let is_named = |step: &Step| options.only.iter().any(|name| name == step.name);
    let is_chosen = |step: &Step| {
        if options.only.is_empty() { !(options.quick && step.slow) } else { is_named(step) }
    };
    let mut done = run(root, is_chosen, &SHORT);
    for step in STEPS.iter().filter(|step| options.quick && step.slow && !is_named(step)) {
        let verdict = Verdict::skipped("left out by --quick");
        done.push(StepReport { name: step.name, verdict, seconds: 0.0 });
    }
    Ok(conclude(&done))
}

/// Runs the campaigns at full length.
///
/// # Errors
/// If a name is not that of a step.
pub(crate) fn soak(root: &Path, options: &SoakOptions) -> Result<ExitCode> {
    check_names(&options.only)?;
    let trials = options.kernel.map_or(Trials::All, Trials::On);
    let fuzzing =
        fuzz::Fuzzing::long(options.fuzz_seconds, options.fuzz_inputs, options.fuzz_target.clone());
    let (mounts, crashes) = (mounts::SuiteChoice::Whole, crashes::CrashChoice::Many);
    let extent = Extent { trials, fuzzing, mounts, crashes };
    let is_chosen = |step: &Step| {
        let named = options.only.iter().any(|name| name == step.name);
        if options.only.is_empty() {
            ["kernel", "client", "migrations", "fuzz"].contains(&step.name)
        } else {
            named
        }
    };
    Ok(conclude(&run(root, is_chosen, &extent)))
}

fn check_names(names: &[String]) -> Result<()> {
    for name in names {
        ensure!(STEPS.iter().any(|step| step.name == name), "no step `{name}`; see --list");
    }
    Ok(())
}

/// Runs the chosen steps: first those that all others need, then two lanes at the same time.
fn run(root: &Path, is_chosen: impl Fn(&Step) -> bool, extent: &Extent) -> Vec<StepReport> {
    let chosen: Vec<&'static Step> = STEPS.iter().filter(|step| is_chosen(step)).collect();
    let done = Mutex::new(Vec::new());
    let run_lane = |lane: Lane| {
        for step in chosen.iter().filter(|step| step.lane == lane) {
            let result = perform(root, step, extent);
            if let Ok(mut done) = done.lock() {
                done.push(result);
            }
        }
    };
    run_lane(Lane::First);
    std::thread::scope(|scope| {
        scope.spawn(|| run_lane(Lane::Beside));
        run_lane(Lane::Main);
    });
    done.into_inner().unwrap_or_default()
}

fn perform(root: &Path, step: &'static Step, extent: &Extent) -> StepReport {
    let start = Instant::now();
    println!("test: {:12} ...", step.name);
    let task = Task { root, name: step.name, extent };
    let verdict = (step.run)(&task).unwrap_or_else(|error| Verdict::failed(format!("{error:#}")));
    let word = if !verdict.failed.is_empty() { "FAILED" } else { "ok" };
    let seconds = start.elapsed().as_secs_f32();
    verdict.notes.iter().for_each(|note| println!("test: {:12} note: {note}", step.name));
    println!("test: {:12} {word:6} {seconds:6.1} s  {verdict}", step.name);
    StepReport { name: step.name, verdict, seconds }
}

/// Prints the time of each step, the tests that were not run, those that failed, and the sum.
fn conclude(done: &[StepReport]) -> ExitCode {
    let mut total = Verdict::default();
    println!("\nstep          seconds");
    for step in done {
        println!("{:12} {:8.1}  {}", step.name, step.seconds, step.verdict);
        total.add(step.verdict.clone().of(step.name));
    }
    let skipped: Vec<String> = total.skipped.iter().map(|test| shortened(test)).collect();
    let lists = [
        ("skipped", &skipped),
        ("left to `cargo xtask soak`", &total.left),
        ("failed", &total.failed),
    ];
    for (title, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
        println!("\n{title}:");
        names.iter().for_each(|name| println!("  {name}"));
    }
    println!("\n{total}");
    if total.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A line of the list of skipped tests: a test with many parts that were not run names all of them
/// in its log.
fn shortened(line: &str) -> String {
    if line.chars().count() <= SKIPPED_CHARACTERS_MAX {
        return line.to_owned();
    }
    let begin: String = line.chars().take(SKIPPED_CHARACTERS_MAX).collect();
    format!("{begin}... ({} parts; the log names all)", line.matches("; ").count() + 1)
}
