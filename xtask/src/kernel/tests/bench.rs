//! The measuring suite on a mount of a kernel client.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "bench",
    about: "comity bench on the mount, with its caches emptied by a new mount, and RPCs counted",
    script: include_str!("bench.sh"),
    seconds_max: 900,
    verify,
    ..Test::EMPTY
};

/// Workloads, each with operations that it must have sent.
const WORKLOADS: &[(&str, &[&str])] = &[
    ("nfsstone", &["GETATTR", "WRITE", "SYMLINK", "CREATE"]),
    ("lsr", &["ACCESS", "READDIRPLUS"]),
    ("postmark", &["CREATE", "WRITE", "REMOVE"]),
    ("andrew", &["MKDIR", "CREATE", "WRITE"]),
];

/// Checks that the result is complete and counts the calls of the kernel, and that the export is
/// empty.
fn verify(ground: &Ground) -> Result<()> {
    let result: Value = serde_json::from_str(&ground.written("result/result.json")?)?;
    ensure!(result["complete"] == true, "the run is not complete: {}", result["failure"]);
    let filesystem = &result["targets"][0]["mount"]["filesystem"];
    ensure!(filesystem == "nfs", "the target is no NFS mount: {filesystem}");
    for (name, kinds) in WORKLOADS {
        let workloads = result["workloads"].as_array().context("no workloads")?;
        let found = workloads.iter().find(|workload| workload["name"] == *name);
        let round = &found.with_context(|| format!("{name} is missing"))?["rounds"][0];
        let samples = round["samples"].as_array().map_or(0, Vec::len);
        ensure!(samples > 0, "{name} has no samples");
        for kind in *kinds {
            let sent = round["calls"][kind].as_u64().unwrap_or(0);
            ensure!(sent > 0, "{name}: no {kind} was counted: {}", round["calls"]);
        }
    }
    let left = fs::read_dir(ground.export())?.count();
    ensure!(left == 0, "{left} entries are left in the export");
    Ok(())
}
