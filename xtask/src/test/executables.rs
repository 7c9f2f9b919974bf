//! Builds the test executables of the workspace, and runs several at a time: most of their time
//! they wait, and `cargo test` runs one after the other.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Task;
use super::command::{Done, run};
use super::steps::PATIENCE;
use super::verdict::Verdict;
use crate::tools::program;
use crate::work_off::work_off;

/// Number of executables at a time.
const JOBS: usize = 3;

/// The package whose tests take longest: they are begun first.
const SLOWEST: &str = "cli";

/// A line of cargo's output in JSON.
#[derive(Deserialize)]
struct CargoMessage {
    reason: String,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<CargoTarget>,
    profile: Option<CargoProfile>,
}

#[derive(Deserialize)]
struct CargoTarget {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct CargoProfile {
    test: bool,
}

/// A test executable.
struct Executable {
    path: PathBuf,
    /// The folder of its package, in which it runs.
    package: PathBuf,
    /// Its source as `cargo test` shows it.
    source: String,
}

/// Builds and runs all tests. Code in the documentation is not run; tidy finds such code.
///
/// # Errors
/// If a program cannot be started.
pub(super) fn step(task: &Task<'_>) -> Result<Verdict> {
    let root = task.root;
    let mut build = Command::new(program());
    build.args(["test", "--workspace", "--locked", "--no-run", "--no-fail-fast"]);
    build.arg("--message-format=json-render-diagnostics");
    let built = run(root, &format!("{}-build", task.name), build, PATIENCE)?;
    let mut verdict = Verdict::default();
    for done in work_off(JOBS, executables(&built.text()), |it| it.run(root, task.name)) {
        verdict.add(done?);
    }
    if !built.success {
        verdict.failed.push("a crate does not compile".into());
        verdict.notes.push(built.ending());
    }
    if verdict.passed == 0 && verdict.failed.is_empty() {
        return Ok(Verdict::failed("no test ran"));
    }
    Ok(verdict)
}

/// Returns the test executables that cargo says it has built, the slowest ones first.
fn executables(text: &str) -> Vec<Executable> {
    let messages = text.lines().filter_map(|line| serde_json::from_str::<CargoMessage>(line).ok());
    let mut found: Vec<Executable> = messages.filter_map(Executable::of).collect();
    found.sort_by_key(|it| !it.package.ends_with(SLOWEST));
    found
}

impl Executable {
    fn of(message: CargoMessage) -> Option<Self> {
        let CargoMessage { reason, executable, manifest_path, target, profile } = message;
        let is_test = reason == "compiler-artifact" && profile?.test;
        let (path, target) = executable.filter(|_| is_test).zip(target)?;
        let package = manifest_path?.parent()?.to_owned();
        let source = target.src_path.strip_prefix(&package).ok()?.display().to_string();
        let is_unit = target.kind.iter().all(|kind| kind != "test");
        let source = if is_unit { format!("unittests {source}") } else { source };
        Some(Self { path, package, source })
    }

    /// Runs its tests. The heading is that of cargo, by which a verdict names tests.
    fn run(&self, root: &Path, step: &str) -> Result<Verdict> {
        let stem = self.path.file_name().context("no file name")?.to_string_lossy();
        let mut command = Command::new(&self.path);
        command.arg("--show-output").current_dir(&self.package);
        command.env("CARGO_MANIFEST_DIR", &self.package);
        let done = run(root, &format!("{step}/{stem}"), command, PATIENCE)?;
        let heading = format!("     Running {} ({})\n", self.source, self.path.display());
        Ok(judged(&done, &heading))
    }
}

/// Reads the output of a run, which may have ended before its sums.
fn judged(done: &Done, heading: &str) -> Verdict {
    let mut verdict = Verdict::of_output(&(heading.to_owned() + &done.text()));
    if !done.success {
        if verdict.failed.is_empty() {
            verdict.failed.push(format!("{}: it has ended without success", heading.trim()));
        }
        verdict.notes.push(done.ending());
    }
    verdict
}
