//! Runs each fuzz target for some seconds, two at a time, at low priority.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::tools;
use crate::work_off::work_off;

use super::Task;
use super::command::{patient, run};
use super::verdict::Verdict;

/// Number of targets at a time.
const JOBS: usize = 2;

/// Longest time for building all targets with their dependencies, while other steps have both
/// processors.
const BUILD_PATIENCE: Duration = Duration::from_secs(80 * 60);

/// The targets that read credentials, which strangers write: [`Fuzzing::SHORT`] gives them a
/// minute.
const CREDENTIALS: [&str; 1] = ["assertion"];

/// Longest time of a target that is given a number of inputs.
const INPUTS_PATIENCE: Duration = Duration::from_secs(6 * 60 * 60);

/// Seconds of wall-clock time after which an input counts as a hang.
const HANG_SECONDS: u64 = 10;

/// Seconds of wall-clock time after which an input of a campaign counts as a hang. A campaign runs
/// for hours next to other work, so that a process may wait long for a processor: an input that
/// used 0.1 s of processor time has taken more than 10 s.
const CAMPAIGN_HANG_SECONDS: u64 = 120;

/// The length of the fuzzing of each target.
#[derive(Debug, Clone)]
pub(super) struct Fuzzing {
    seconds: u64,
    /// Seconds for the targets of [`CREDENTIALS`].
    credential_seconds: u64,
    /// If set, runs this number of inputs instead.
    inputs: Option<u64>,
    /// Only these targets; all if empty.
    only: Vec<String>,
    hang_seconds: u64,
}

impl Fuzzing {
    /// The part that `cargo xtask test` runs.
    pub(super) const SHORT: Self = Self {
        seconds: 15,
        credential_seconds: 60,
        inputs: None,
        only: Vec::new(),
        hang_seconds: HANG_SECONDS,
    };

    /// The extent of a campaign.
    pub(super) const fn long(seconds: u64, inputs: Option<u64>, only: Vec<String>) -> Self {
        let hang_seconds = CAMPAIGN_HANG_SECONDS;
        Self { seconds, credential_seconds: seconds, inputs, only, hang_seconds }
    }

    /// The option of libFuzzer that ends the fuzzing of a target, and the longest time until then.
    fn end(&self, target: &str) -> (String, Duration) {
        if let Some(inputs) = self.inputs {
            return (format!("-runs={inputs}"), INPUTS_PATIENCE);
        }
        let is_credential = CREDENTIALS.contains(&target);
        let seconds = if is_credential { self.credential_seconds } else { self.seconds };
        (format!("-max_total_time={seconds}"), Duration::from_secs(seconds + 300))
    }
}

/// Builds all targets, with the address sanitizer if there is a nightly toolchain, and runs them.
///
/// # Errors
/// If cargo-fuzz cannot be installed, or a target does not build.
pub(super) fn step(task: &Task<'_>) -> Result<Verdict> {
    let (root, fuzzing) = (task.root, &task.extent.fuzzing);
    let tool = tools::install(root, "cargo-fuzz", "0.13.2")?;
    let nightly = has_nightly();
    let folder = build(root, task.name, &tool, nightly)?;
    let mut targets = targets(root)?;
    for name in &fuzzing.only {
        ensure!(targets.contains(name), "no fuzz target `{name}`: there are {}", targets.join(" "));
    }
    targets.retain(|target| fuzzing.only.is_empty() || fuzzing.only.contains(target));
    ensure!(!targets.is_empty(), "no fuzz targets");
    let mut verdict = Verdict::default();
    let verdicts = work_off(JOBS, targets, |target| {
        fuzz(root, &folder, &target, fuzzing)
            .unwrap_or_else(|error| Verdict::failed(format!("{target}: {error:#}")))
    });
    verdicts.into_iter().for_each(|of_target| verdict.add(of_target));
    if !nightly {
        let note = "no nightly toolchain: built without the address sanitizer";
        verdict.notes.push(note.into());
    }
    Ok(verdict)
}

/// The names of the targets, which are those of their files.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let files = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn has_nightly() -> bool {
    let asked = Command::new("rustup").args(["run", "nightly", "rustc", "--version"]).output();
    asked.is_ok_and(|done| done.status.success())
}

/// Builds all targets; returns the folder of the programs.
fn build(root: &Path, name: &str, tool: &Path, nightly: bool) -> Result<PathBuf> {
    let folder = root.join("target/fuzz");
    let mut command = patient(tool);
    command.args(["build", "--target-dir"]).arg(&folder);
    if !nightly {
        command.args(["--sanitizer", "none"]);
    }
    // Child processes must choose the toolchain again, and not take that of this program.
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC", "CARGO_TARGET_DIR"] {
        command.env_remove(variable);
    }
    if nightly {
        command.env("RUSTUP_TOOLCHAIN", "nightly");
    }
    let done = run(root, &format!("{name}-build"), command, BUILD_PATIENCE)?;
    ensure!(done.success, "fuzz targets do not build; {}", done.ending());
    let made = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path().join("release")));
    made.into_iter().find(|path| path.is_dir()).context("cargo-fuzz has built no programs")
}

/// Runs one target on its corpus; new inputs are kept under `target`.
fn fuzz(root: &Path, folder: &Path, target: &str, fuzzing: &Fuzzing) -> Result<Verdict> {
    let found = root.join("target/fuzz/corpus").join(target);
    let artifacts = root.join("target/fuzz/artifacts").join(target);
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&artifacts)?;
    let seeds = root.join("fuzz/corpus").join(target);
    ensure!(seeds.is_dir(), "no seeds in {}", seeds.display());
    let (end, patience) = fuzzing.end(target);
    let mut command = patient(folder.join(target));
    command
        .arg(end)
        .args(["-rss_limit_mb=1024", "-malloc_limit_mb=256", "-print_final_stats=1"])
        .arg(format!("-timeout={}", fuzzing.hang_seconds))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([found, seeds]);
    let began = Instant::now();
    let done = run(root, &format!("fuzz-{target}"), command, patience)?;
    if !done.success {
        return Ok(Verdict::failed(format!("{target}: {}", done.ending())));
    }
    let text = done.text();
    let runs = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let (runs, seconds) = (runs.unwrap_or("?").trim(), began.elapsed().as_secs());
    println!("test: fuzz         {target}: {runs} inputs in {seconds} s");
    Ok(Verdict::passed())
}
