//! Builds the test executables of the workspace, and runs several at a time: most of their time
//! they wait, and `cargo test` runs one after the other. The same build makes the program that
//! other steps test.

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
    name: String,
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
    let built = build(root, task.name)?;
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

/// Returns the program `comity` that the tests use. If they have run before, nothing is built: a
/// build of its package alone would choose other features of its dependencies.
///
/// # Errors
/// If it does not compile.
pub(super) fn comity(root: &Path, step: &str) -> Result<PathBuf> {
    let built = build(root, step)?;
    let program = messages(&built.text()).find_map(CargoMessage::program);
    program.filter(|_| built.success).with_context(|| built.ending())
}

fn build(root: &Path, step: &str) -> Result<Done> {
    let mut build = Command::new(program());
    build.args(["test", "--workspace", "--locked", "--no-run", "--no-fail-fast"]);
    build.arg("--message-format=json-render-diagnostics");
    run(root, &format!("{step}-build"), build, PATIENCE)
}

fn messages(text: &str) -> impl Iterator<Item = CargoMessage> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// Returns the test executables that cargo says it has built, the slowest ones first.
fn executables(text: &str) -> Vec<Executable> {
    let mut found: Vec<Executable> = messages(text).filter_map(Executable::of).collect();
    found.sort_by_key(|it| !it.package.ends_with(SLOWEST));
    found
}

impl CargoMessage {
    /// Returns the executable if it is the program `comity` without its unit tests.
    fn program(self) -> Option<PathBuf> {
        let target = self.target?;
        let is_program = target.name == "comity" && target.kind == ["bin"] && !self.profile?.test;
        self.executable.filter(|_| is_program)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that cargo prints for a target of a crate.
    fn message(krate: &str, name: &str, is_test: bool, executable: &str) -> String {
        let manifest = format!("/c/{krate}/Cargo.toml");
        let source = format!("/c/{krate}/src/main.rs");
        let message = serde_json::json!({
            "reason": "compiler-artifact", "manifest_path": manifest, "executable": executable,
            "target": { "name": name, "kind": ["bin"], "src_path": source },
            "profile": { "test": is_test },
        });
        format!("{message}\n")
    }

    #[test]
    fn the_program_is_told_from_its_unit_tests_and_from_other_programs() {
        let text = [
            "warning: text of a compiler\n".to_owned(),
            message("cli", "comity", true, "/t/deps/comity-1"),
            message("perf", "comity-perf", false, "/t/comity-perf"),
            message("cli", "comity", false, "/t/comity"),
            "{\"reason\":\"build-finished\",\"success\":true}\n".to_owned(),
        ]
        .concat();
        let program = messages(&text).find_map(CargoMessage::program);
        assert_eq!(program.as_deref(), Some(Path::new("/t/comity")));
        let tests: Vec<_> = executables(&text).into_iter().map(|test| test.path).collect();
        assert_eq!(tests, [Path::new("/t/deps/comity-1")]);
    }
}
