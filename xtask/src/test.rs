//! `cargo xtask test`: everything that shows that the house stands, in one command.
//!
//! Every step runs, whatever the ones before it have found. What a step prints goes to
//! `target/xtask/STEP.log`; here it gets one line, and the end of its log if it failed.

mod command;
mod deny;
mod fuzz;
mod licence;
mod packages;
mod steps;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;

use steps::{STEPS, Step};

/// Which steps to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only this step; may be given more than once.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Leave out the kernel client tests, the fuzz targets and the instruction counts.
    #[arg(long)]
    quick: bool,
    /// Say which steps there are.
    #[arg(long)]
    list: bool,
}

/// What came of a step, in tests.
#[derive(Debug, Clone, Default)]
struct Verdict {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// What is worth saying: why something failed or was skipped.
    notes: Vec<String>,
}

impl Verdict {
    fn passed() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    fn failed(why: impl Into<String>) -> Self {
        Self { failed: 1, notes: vec![why.into()], ..Self::default() }
    }

    fn skipped(why: impl Into<String>) -> Self {
        Self { skipped: 1, notes: vec![why.into()], ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.notes.extend(other.notes);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Runs the steps asked for; the last line is the sum of all.
///
/// # Errors
/// A name that is no step's.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    for name in &options.only {
        ensure!(STEPS.iter().any(|step| step.name == name), "no step `{name}`; see --list");
    }
    if options.list {
        STEPS.iter().for_each(|step| println!("{:12} {}", step.name, step.about));
        return Ok(ExitCode::SUCCESS);
    }
    let start = Instant::now();
    let mut total = Verdict::default();
    for step in STEPS.iter().filter(|step| is_chosen(step, options)) {
        total.add(perform(root, step));
    }
    println!("test: {:.0} s in all", start.elapsed().as_secs_f32());
    println!("{total}");
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_chosen(step: &Step, options: &Options) -> bool {
    let named = options.only.iter().any(|name| name == step.name);
    if options.only.is_empty() { !(options.quick && step.slow) } else { named }
}

fn perform(root: &Path, step: &Step) -> Verdict {
    let start = Instant::now();
    println!("test: {:12} ...", step.name);
    let verdict =
        (step.run)(root, step.name).unwrap_or_else(|error| Verdict::failed(format!("{error:#}")));
    let word = if verdict.failed > 0 { "FAILED" } else { "ok" };
    let seconds = start.elapsed().as_secs_f32();
    verdict.notes.iter().for_each(|note| println!("test: {:12} note: {note}", step.name));
    println!("test: {:12} {word:6} {seconds:6.1} s  {verdict}", step.name);
    verdict
}
