//! Each fuzz target for some seconds, two at a time, at low priority.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::tools;

use super::Task;
use super::command::{patient, run};
use super::verdict::Verdict;

/// Targets at a time.
const JOBS: usize = 2;

/// Longest time for building all targets with their dependencies.
const BUILD_PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Builds all targets, with the address sanitizer if there is a nightly toolchain, and runs them.
///
/// # Errors
/// If cargo-fuzz is not to be had, or a target does not build.
pub(super) fn step(task: &Task<'_>) -> Result<Verdict> {
    let (root, seconds) = (task.root, task.extent.fuzz_seconds);
    let tool = tools::install(root, "cargo-fuzz", "0.13.2")?;
    let nightly = has_nightly();
    let folder = build(root, task.name, &tool, nightly)?;
    let targets = targets(root)?;
    ensure!(!targets.is_empty(), "no fuzz targets");
    let queue = Mutex::new(targets.into_iter());
    let total = Mutex::new(Verdict::default());
    std::thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| work_off(root, &folder, seconds, (&queue, &total)));
        }
    });
    let mut verdict = total.into_inner().unwrap_or_default();
    if !nightly {
        let note = "no nightly toolchain: built without the address sanitizer";
        verdict.notes.push(note.into());
    }
    Ok(verdict)
}

/// The names of the targets: their files.
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

/// Builds all targets; tells the folder they are in.
fn build(root: &Path, name: &str, tool: &Path, nightly: bool) -> Result<PathBuf> {
    let folder = root.join("target/fuzz");
    let mut command = patient(tool);
    command.args(["build", "--target-dir"]).arg(&folder);
    if !nightly {
        command.args(["--sanitizer", "none"]);
    }
    // The toolchain that runs this program is told to its children; they are to choose anew.
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC", "CARGO_TARGET_DIR"] {
        command.env_remove(variable);
    }
    if nightly {
        command.env("RUSTUP_TOOLCHAIN", "nightly");
    }
    let done = run(root, &format!("{name}-build"), command, BUILD_PATIENCE)?;
    ensure!(done.success, "fuzz targets do not build; {}", done.ending());
    let made = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path().join("release")));
    made.into_iter().find(|path| path.is_dir()).context("cargo-fuzz has left no programs")
}

fn work_off(
    root: &Path,
    folder: &Path,
    seconds: u64,
    (queue, total): (&Mutex<impl Iterator<Item = String>>, &Mutex<Verdict>),
) {
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    while let Some(target) = next() {
        let verdict = fuzz(root, folder, &target, seconds)
            .unwrap_or_else(|error| Verdict::failed(format!("{target}: {error:#}")));
        if let Ok(mut total) = total.lock() {
            total.add(verdict);
        }
    }
}

/// Runs one target on its corpus; what it finds on the way stays under `target`.
fn fuzz(root: &Path, folder: &Path, target: &str, seconds: u64) -> Result<Verdict> {
    let found = root.join("target/fuzz/corpus").join(target);
    let artifacts = root.join("target/fuzz/artifacts").join(target);
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&artifacts)?;
    let seeds = root.join("fuzz/corpus").join(target);
    ensure!(seeds.is_dir(), "no seeds in {}", seeds.display());
    let mut command = patient(folder.join(target));
    command
        .arg(format!("-max_total_time={seconds}"))
        .args(["-rss_limit_mb=1024", "-malloc_limit_mb=256", "-timeout=10", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([found, seeds]);
    let done = run(root, &format!("fuzz-{target}"), command, Duration::from_secs(seconds + 300))?;
    if !done.success {
        return Ok(Verdict::failed(format!("{target}: {}", done.ending())));
    }
    let text = done.text();
    let runs = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    println!("test: fuzz         {target}: {} inputs in {seconds} s", runs.unwrap_or("?").trim());
    Ok(Verdict::passed())
}
