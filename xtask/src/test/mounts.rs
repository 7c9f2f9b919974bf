//! Suites of other projects on mounts of the client, and kills of the mount's program.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::command::judge;
use super::executables;
use super::verdict::Verdict;
use crate::tools::program;

/// The part of the campaigns that is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SuiteChoice {
    /// A suite that takes less than a minute. The ordinary tests also kill the program a few times.
    Short,
    /// All suites whose sources need not be given, and [`KILL_ROUNDS`] kills for each write mode.
    Whole,
}

/// Rounds of `crates/cli/tests/mount_faults.rs`, of two kills each.
const KILL_ROUNDS: &str = "250";

/// Longest time of one part, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(4 * 60 * 60);

/// Runs the suites, and the kills if they are part of the choice.
///
/// # Errors
/// If a program cannot be built or started.
pub(super) fn step(root: &Path, name: &str, choice: SuiteChoice) -> Result<Verdict> {
    if !Path::new("/dev/fuse").exists() {
        return Ok(Verdict::skipped("there is no /dev/fuse"));
    }
    let suites: &[&str] = if choice == SuiteChoice::Short { &["sqlite"] } else { &[] };
    let mut command = Command::new(program());
    command.args(["run", "--quiet", "--package", "xtask", "--", "conformance", "--client"]);
    command.arg("--program").arg(executables::comity(root, name)?).args(suites);
    let mut verdict = judge(root, name, command, PATIENCE)?;
    if choice == SuiteChoice::Whole {
        let mut kills = Command::new(program());
        kills.args(["test", "--locked", "--package", "comity-cli", "--test", "mount_faults"]);
        kills.args(["killed"]).env("COMITY_KILL_ROUNDS", KILL_ROUNDS);
        verdict.add(judge(root, &format!("{name}-kills"), kills, PATIENCE)?);
    }
    Ok(verdict)
}
