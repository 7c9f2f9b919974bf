//! Servers that are killed while an export moves between them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::command::judge;
use super::verdict::Verdict;
use crate::tools::program;

/// The number of crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CrashChoice {
    /// The few crashes of the ordinary tests.
    Few,
    /// [`CRASHES`].
    Many,
}

/// Crashes of `crates/cli/tests/migrate/crashes.rs` in a long campaign.
const CRASHES: &str = "200";

/// Crashes of `crates/cli/tests/cluster/crashes.rs`, each of which takes about 15 seconds.
const CLUSTER_CRASHES: &str = "60";

/// Longest time of the campaign, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Runs the campaign if it is part of the choice.
///
/// # Errors
/// If cargo cannot be started.
pub(super) fn step(root: &Path, name: &str, choice: CrashChoice) -> Result<Verdict> {
    if choice == CrashChoice::Few {
        let left = vec![format!("{CRASHES} crashes of servers; the tests have a few")];
        return Ok(Verdict { left, ..Verdict::default() });
    }
    let mut crashes = Command::new(program());
    crashes.args(["test", "--locked", "--package", "comity-cli"]);
    crashes.args(["--test", "migrate", "--test", "cluster", "crashes"]);
    crashes.env("COMITY_MIGRATION_CRASHES", CRASHES);
    crashes.env("COMITY_CLUSTER_CRASHES", CLUSTER_CRASHES);
    judge(root, name, crashes, PATIENCE)
}
