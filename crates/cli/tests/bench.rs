//! `comity bench` as users run it: on a directory, on a server it starts, interrupted, and wrongly.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use common::{PATIENCE, Place, comity, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn result(place: &Path) -> Value {
    serde_json::from_slice(&fs::read(place.join("result.json")).unwrap()).unwrap()
}

fn refused(arguments: &[&str], names: &str) {
    let said = run(comity().arg("bench").args(arguments));
    assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {}", said.err);
    assert!(said.err.contains(names), "{arguments:?} does not name {names}: {}", said.err);
}

#[test]
fn what_was_typed_wrongly_is_a_usage_error() {
    refused(&["run"], "subcommand");
    refused(&["run", "postmrk"], "did you mean postmark?");
    refused(&["run", "postmark"], "TARGET");
    refused(&["run", "postmark", "/tmp", "--size-most", "much"], "`much` is no number of bytes");
    refused(&["run", "postmark", "peer:samba"], "there are peer:comity and peer:ganesha");
    refused(&["run", "postmark", "/tmp", "--quick", "--paper"], "--paper");
    refused(&["run", "all", "/tmp", "--only", "nfsstone,dbench"], "dbench");
    refused(&["run", "lsr", "/tmp", "--resume"], "--output");
    refused(&["agent"], "--allow");
}

#[test]
fn what_cannot_be_done_is_told_in_a_line_that_says_what_to_do() {
    let place = Place::new();
    let output = place.path("result");
    let failed = |arguments: &[&str], names: &[&str]| {
        let mut command = comity();
        command.args(["bench", "run"]).args(arguments).arg("--output").arg(&output);
        let said = run(command.env("CC", "no-such-compiler"));
        assert_eq!(said.code, Some(1), "{}", said.err);
        let last = said.err.lines().last().unwrap_or_default();
        for name in names {
            assert!(last.contains(name), "{arguments:?} does not say {name}: {last}");
        }
        let _ = fs::remove_dir_all(&output);
    };
    let data = place.data().display().to_string();
    failed(&["lsr", "/nowhere/at/all"], &["/nowhere/at/all", "name one that exists"]);
    failed(&["rpc", &data], &["needs a server", "peer:comity"]);
    failed(&["lsr", "nfs://127.0.0.1:1/x"], &["127.0.0.1:1", "nobody answers"]);
    failed(&["compile", &data, "--quiet"], &["no C compiler `no-such-compiler`", "gcc"]);
    place.write("data/mine", "");
    failed(&["lsr", &data], &["is not empty (`mine`)", "--here"]);
}

#[test]
fn workloads_are_listed_and_each_has_its_help() {
    let said = run(comity().args(["bench", "list"]));
    assert_eq!(said.code, Some(0));
    let names = ["nfsstone", "lsr", "postmark", "grep", "compile", "andrew", "badros", "bonnie"];
    for name in names.into_iter().chain(["locks", "rpc", "selfscale"]) {
        assert!(said.out.lines().any(|line| line.starts_with(name)), "{name}: {}", said.out);
        let help = run(comity().args(["bench", "run", name, "--help"]));
        assert_eq!(help.code, Some(0));
        assert!(help.out.contains("Parameters:") && help.out.contains("--seed"), "{}", help.out);
    }
}

#[test]
fn a_directory_and_a_server_that_is_started_take_turns() {
    let place = Place::new();
    let output = place.path("result");
    let mut command = comity();
    command.args(["bench", "run", "all", "--only", "nfsstone,postmark,rpc", "--quick"]);
    command.args(["--rounds", "1"]).arg(place.data());
    command.arg(format!("peer:comity={}", place.path("").display()));
    let said = run(command.arg("--output").arg(&output));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("rpc on") && said.err.contains("left out"), "{}", said.err);
    let first = said.out.lines().next();
    assert_eq!(first, Some(output.join("result.json").display().to_string().as_str()));
    let result = result(&output);
    assert_eq!(result["complete"], true, "{}", result["failure"]);
    assert_eq!(result["schema"], 1);
    let nfsstone = &result["workloads"][0]["rounds"];
    assert_eq!(nfsstone[0]["calls"], Value::Null, "a local directory is sent no RPCs");
    // Every operation of the mix is at least one call; the server has counted them.
    let calls = &nfsstone[1]["calls"];
    assert!(calls["READ"].as_u64() >= Some(14_655), "{calls}");
    assert!(calls["WRITE"].as_u64() >= Some(1_466), "{calls}");
    let rpc = &result["workloads"][2]["rounds"][0];
    assert!(rpc["samples"].as_array().unwrap().len() >= 40, "{rpc}");
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0, "files are left");
    let left = fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(left, 2, "the peer's folder is left");
}

#[test]
fn an_open_loop_counts_from_when_calls_are_due() {
    let place = Place::new();
    let output = place.path("result");
    let mut command = comity();
    command.args(["bench", "run", "rpc", "--rate", "2000", "--seconds", "0.5", "--rounds", "1"]);
    command.args(["--operations", "null,getattr", "--connections", "2", "--depths", "16"]);
    command.arg(format!("peer:comity={}", place.path("").display()));
    let said = run(command.arg("--output").arg(&output));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let round = &result(&output)["workloads"][0]["rounds"][0];
    for latency in round["latencies"].as_array().unwrap() {
        assert_eq!(latency["from_due_time"], true);
        let buckets = latency["buckets"].as_array().unwrap();
        let calls: u64 = buckets.iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
        // 1,000 are due; their gaps are random.
        assert!((800..1200).contains(&calls), "{calls} calls");
    }
}

#[test]
fn an_interrupted_run_leaves_a_valid_result_and_nothing_else() {
    let place = Place::new();
    let output = place.path("result");
    let mut command = comity();
    command.args(["bench", "run", "lsr", "--users", "1", "--rounds", "10000"]).arg(place.data());
    command.arg("--output").arg(&output).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let start = Instant::now();
    let rounds = || result(&output)["workloads"][0]["rounds"].as_array().unwrap().len();
    while !output.join("result.json").exists() || rounds() == 0 {
        assert!(start.elapsed() < PATIENCE, "no round ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = child.wait_with_output().unwrap();
    let said = (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned());
    assert_eq!(said.0, Some(1), "{}", said.1);
    assert!(said.1.contains("interrupted") && said.1.contains("--resume"), "{}", said.1);
    let result = result(&output);
    assert_eq!(result["complete"], false);
    assert_eq!(result["workloads"][0]["rounds"][0]["complete"], true);
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0, "files are left");
}
