//! The calls of the disk-caching client and of the kernel's client in the tests of 1998, side by
//! side in one guest, counted at the server.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "bench-client",
    about: "calls of `comity mount` in the thirteen tests of 1998, beside those of the kernel",
    version: "4.2",
    script: include_str!("bench_client.sh"),
    takes_tls: false,
    arguments: &["--no-register", "--metrics", "10.77.0.1:9049"],
    seconds_max: 900,
    verify,
    ..Test::EMPTY
};

/// Calls by test and number of copies.
type Calls = BTreeMap<(String, u64), u64>;

/// Calls that the kernel's client may have saved by luck: a renewal of the lease falls into the one
/// test or the other.
const RENEWALS: u64 = 1;

/// Tests that take more calls than they should (docs/benchmarks.md), with the most that they may
/// take as a multiple of the kernel's.
const MISSED: &[((&str, u64), f64)] = &[
    (("2 copy", 4), 2.0),
    (("4 read", 4), f64::INFINITY),
    (("5 compile", 1), 1.3),
    (("7 ls", 4), 60.0),
];

/// Returns whether a test takes no more calls than with the kernel's client, or is a known miss.
fn is_met((test, copies): (&str, u64), theirs: u64, ours: u64) -> bool {
    let missed = MISSED.iter().find(|(name, _)| *name == (test, copies));
    let most = missed.map_or(1.0, |(_, most)| *most) * theirs as f64 + RENEWALS as f64;
    most.is_nan() || ours as f64 <= most
}

/// Checks that no test takes more calls than with the kernel's client.
fn verify(ground: &Ground) -> Result<()> {
    let [linux, comity] = ["linux", "comity"].map(|client| calls(ground, client));
    let (linux, comity) = (linux?, comity?);
    ensure!(linux.len() == 26 && comity.len() == 26, "13 tests, once and 4 times: {linux:?}");
    let (mut table, mut worse) = (String::new(), Vec::new());
    for ((test, copies), theirs) in &linux {
        let ours = comity.get(&(test.clone(), *copies)).context("a test is missing")?;
        let row = format!("{test:24} {copies:2} {theirs:8} {ours:8}");
        writeln!(table, "{row}")?;
        if !is_met((test, *copies), *theirs, *ours) {
            worse.push(row);
        }
    }
    println!("test                copies   kernel   comity\n{table}");
    ensure!(worse.is_empty(), "more calls than the kernel's client:\n{}", worse.join("\n"));
    Ok(())
}

/// The calls of one client.
fn calls(ground: &Ground, client: &str) -> Result<Calls> {
    let result: Value = serde_json::from_str(&ground.written(&format!("{client}/result.json"))?)?;
    ensure!(result["complete"] == true, "{client}: the run is not complete: {}", result["failure"]);
    let samples = result["workloads"][0]["rounds"][0]["samples"].as_array().context("samples")?;
    let one = |sample: &Value| {
        let test = sample["metric"].as_str()?.strip_prefix("calls: ")?.to_owned();
        let number = |value: &Value| value.as_f64().map(|number| number as u64);
        Some(((test, number(&sample["at"]["copies"])?), number(&sample["value"])?))
    };
    Ok(samples.iter().filter_map(one).collect())
}
