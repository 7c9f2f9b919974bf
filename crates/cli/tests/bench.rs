//! `comity bench` as users run it: on a directory, on a server that it starts, interrupted, and
//! with wrong arguments.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use common::{PATIENCE, Place, Running, comity, run};
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
fn mistyped_arguments_are_a_usage_error() {
    refused(&["run"], "subcommand");
    refused(&["run", "postmrk"], "did you mean postmark?");
    refused(&["run", "postmark"], "TARGET");
    refused(&["run", "postmark", "/tmp", "--size-most", "much"], "`much` is no number of bytes");
    refused(
        &["run", "postmark", "peer:samba"],
        "there are peer:comity, peer:memory, peer:keys and",
    );
    refused(&["run", "postmark", "nfs://h/x?vers=4.2"], "there are 3 and 4.1");
    refused(&["run", "postmark", "/tmp", "--limit-minutes", "0"], "--limit-minutes");
    refused(&["run", "postmark", "/tmp", "--quick", "--paper"], "--paper");
    refused(&["run", "all", "/tmp", "--only", "nfsstone,dbench"], "dbench");
    refused(&["run", "lsr", "/tmp", "--resume"], "--output");
    refused(&["run", "postmark", "nfs://host"], "nfs://host[:port]/export");
    refused(&["run", "lsr", "nfs://fe80::1/x"], "nfs://[fe80::1]/x");
    refused(&["run", "lsr", "peer:knfsd"], "nfs://host/export");
    refused(&["run", "lsr", "/tmp", "peer:comity", "/tmp"], "/tmp is named twice");
    refused(&["run", "lsr", "/tmp", "--agent", "server"], "`server` has no port: HOST:20491");
    refused(&["agent"], "--allow");
    refused(&["consume"], "subcommand");
    refused(&["consume", "cpu", "--level", "1.5"], "0 to 1 is wanted");
    refused(&["consume", "cpu", "--seconds", "0"], "--seconds");
    refused(&["consume", "network", "--to", "127.0.0.1:9"], "--bits-per-second");
}

#[test]
fn each_consumer_uses_its_resource_for_the_given_time() {
    let place = Place::new();
    let server = Running::start(&mut place.serve_data());
    let (data, address) = (place.data(), format!("127.0.0.1:{}", server.port));
    let folder = data.to_str().unwrap();
    for (resource, more) in [
        ("cpu", vec!["--threads", "1"]),
        ("memory", vec![]),
        ("disk", vec!["--directory", folder]),
        ("seek", vec!["--directory", folder]),
        ("network", vec!["--to", "127.0.0.1:9", "--bits-per-second", "1e6"]),
        ("rpc", vec!["--server", &address]),
    ] {
        let begun = Instant::now();
        let mut consumer = comity();
        consumer.args(["bench", "consume", resource, "--level", "0.01", "--seconds", "1"]);
        let said = run(consumer.args(more));
        if said.err.contains("takes no direct access") {
            eprintln!("skipped: {resource}: {}", said.err.trim());
            continue;
        }
        assert_eq!(said.code, Some(0), "{resource}: {}", said.err);
        assert!(begun.elapsed().as_secs() >= 1, "{resource} ended early");
    }
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "a consumer left a file");
}

#[test]
fn a_consumer_that_cannot_use_its_resource_says_what_to_do() {
    for (arguments, names) in [
        (["disk", "--directory", "/nowhere"], "/nowhere"),
        (["rpc", "--server", "127.0.0.1:1"], "connect to 127.0.0.1:1"),
        (["rpc", "--server", "nowhere"], "HOST:PORT"),
    ] {
        let said = run(comity().args(["bench", "consume"]).args(arguments));
        assert_eq!(said.code, Some(1), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(names), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn parameters_that_make_no_sense_are_a_usage_error_before_anything_is_made() {
    for (workload, given, names) in [
        ("nfsstone", ["--operations", "0"], "--operations"),
        ("lsr", ["--users", "10,0"], "--users"),
        ("postmark", ["--read-block", "0"], "--read-block"),
        ("grep", ["--pattern", ""], "--pattern"),
        ("compile", ["--command", "make"], "--tree"),
        ("compile", ["--programs", "0"], "--programs"),
        ("andrew", ["--files", "0"], "--files"),
        ("badros", ["--copies", "0"], "--copies"),
        ("badros", ["--block-size", "0"], "--block-size"),
        ("bonnie", ["--block-size", "0"], "--block-size"),
        ("locks", ["--ranges", "0"], "--ranges"),
        ("locks", ["--waiters", "0"], "--waiters"),
        ("discfs", ["--parts", "grep,tar"], "--parts: from postmark,grep,build"),
        ("discfs", ["--decisions", "8,0"], "--decisions"),
        ("discfs", ["--chains", "65"], "--chains"),
        ("rpc", ["--operations", "nul"], "there is no `nul`"),
        ("rpc", ["--depths", "0"], "--depths"),
        ("rpc", ["--seconds", "1e300"], "--seconds"),
        ("selfscale", ["--size-least", "0"], "--size-least"),
    ] {
        refused(&["run", workload, given[0], given[1], "/tmp"], names);
    }
}

#[test]
fn a_run_that_cannot_start_ends_with_a_line_that_says_what_to_do() {
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
    failed(&["lsr", "/nowhere/at/all"], &["/nowhere/at/all", "name one that you may use"]);
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
    for name in names.into_iter().chain(["discfs", "locks", "rpc", "selfscale"]) {
        assert!(said.out.lines().any(|line| line.starts_with(name)), "{name}: {}", said.out);
        let help = run(comity().args(["bench", "run", name, "--help"]));
        assert_eq!(help.code, Some(0));
        assert!(help.out.contains("Parameters:") && help.out.contains("--seed"), "{}", help.out);
    }
}

/// `comity bench list | head -1`
#[test]
fn a_closed_pipe_is_not_an_error_of_the_list_of_workloads() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = comity().args(["bench", "list"]).stdout(writer).output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!((ended.status.code(), errors.as_str()), (Some(0), ""));
}

#[test]
fn a_directory_and_a_server_that_is_started_take_turns() {
    let place = Place::new();
    let output = place.path("result");
    let mut command = comity();
    command.args(["bench", "run", "all", "--only", "postmark,locks", "--quick"]);
    command.args(["--rounds", "1"]).arg(place.data());
    command.arg(format!("peer:comity={}", place.path("").display()));
    let said = run(command.arg("--output").arg(&output));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("locks on peer:") && said.err.contains("left out"), "{}", said.err);
    let first = said.out.lines().next();
    assert_eq!(first, Some(output.join("result.json").display().to_string().as_str()));
    let result = result(&output);
    assert_eq!(result["complete"], true, "{}", result["failure"]);
    assert_eq!(result["schema"], 1);
    let postmark = &result["workloads"][0]["rounds"];
    assert_eq!(postmark[0]["calls"], Value::Null, "a local directory is sent no RPCs");
    // Each of the pool's 500 files is written and removed; these are the counts of the server.
    let calls = &postmark[1]["calls"];
    for kind in ["CREATE", "WRITE", "COMMIT", "REMOVE"] {
        assert!(calls[kind].as_u64() >= Some(500), "{kind}: {calls}");
    }
    assert_eq!(result["workloads"][1]["rounds"].as_array().unwrap().len(), 1);
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0, "files are left");
    let left = fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(left, 2, "the peer's folder is left");
}

/// Small sizes of `discfs`.
const DISCFS: [&str; 20] = [
    "--postmark-files=20",
    "--transactions=20",
    "--grep-files=30",
    "--sources=30",
    "--products=10",
    "--bonnie-bytes=256K",
    "--decisions=1,64",
    "--files=10",
    "--reads=20",
    "--chains=1,3",
    "--chain-files=30",
    "--rounds=1",
    "--quick",
    "--seed=1",
    "peer:keys?vers=3",
    "peer:keys?vers=4.1",
    "bench",
    "run",
    "discfs",
    "--output",
];

#[test]
fn work_by_grants_is_measured_beside_work_by_an_account() {
    let place = Place::new();
    let output = place.path("result");
    let (options, words) = DISCFS.split_at(16);
    let said = run(comity().args(words).arg(&output).args(options));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let result = result(&output);
    for round in result["workloads"][0]["rounds"].as_array().unwrap() {
        let samples = round["samples"].as_array().unwrap();
        let count = |metric: &str, name: &str, value: &Value| {
            let is_one =
                |sample: &&Value| sample["metric"] == metric && sample["at"][name] == *value;
            samples.iter().filter(is_one).count()
        };
        for part in ["postmark transactions", "grep time", "build time", "bonnie read"] {
            let counted = ["NK", "COLD", "WARM"].map(|by| count(part, "rights", &by.into()));
            assert_eq!(counted, [2, 1, 1], "{part} of NK, COLD, WARM");
        }
        for kept in [Value::from("NK"), 1.0.into(), 64.0.into()] {
            assert_eq!(count("decisions reads", "kept", &kept), 1, "{kept}");
        }
        for links in [0.0, 1.0, 3.0] {
            assert_eq!(count("chain time", "links", &links.into()), 1, "{links} links");
        }
    }
}

#[test]
fn work_by_grants_needs_a_server_that_knows_keys() {
    let place = Place::new();
    let mut command = comity();
    command.args(["bench", "run", "discfs"]).arg(place.data());
    let said = run(command.arg("--output").arg(place.path("result")));
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("discfs needs a server") && said.err.contains("peer:keys"));
}

/// Parameters that make the workloads small.
const SMALL: &[(&str, &[&str])] = &[
    ("nfsstone", &["--operations", "1000", "--directories", "3", "--files", "5"]),
    ("lsr", &["--files", "50", "--users", "1,10"]),
    ("postmark", &["--files", "50", "--transactions", "50"]),
    ("andrew", &["--files", "5", "--directories", "3"]),
    ("locks", &["--files", "1,10", "--ranges", "3,30", "--waiters", "1,10"]),
    ("selfscale", &["--quick", "--limit-minutes", "0.01", "--bytes-most", "4M"]),
    ("rpc", &["--seconds", "0.05", "--depths", "8", "--connections", "1,3"]),
];

#[test]
fn a_server_is_measured_in_version_4_1_as_in_version_3() {
    let place = Place::new();
    let line = format!("{} 127.0.0.1(rw,insecure,no_root_squash)\n", place.data().display());
    let exports = place.write("exports", &line).display().to_string();
    let server = Running::start(&mut place.serve(&["--exports", &exports, "--in-memory"]));
    let url = format!("nfs://127.0.0.1:{}{}", server.port, place.data().display());
    for (workload, sizes) in SMALL {
        let output = place.path(workload);
        let mut command = comity();
        command.args(["bench", "run", workload, "--rounds", "1", "--quiet"]).args(*sizes);
        command.arg(format!("{url}?vers=4.1")).arg("--output").arg(&output);
        let said = run(&mut command);
        assert_eq!(said.code, Some(0), "{workload}: {}", said.err);
        let result = result(&output);
        assert_eq!(result["complete"], true, "{workload}");
        let settings = &result["targets"][0]["settings"];
        assert_eq!(settings["protocol"], "NFSv4.1 over TCP");
        let samples = result["workloads"][0]["rounds"][0]["samples"].as_array().unwrap().len();
        // Ten operations, of which one has two samples, over one connection and over three.
        assert!(if *workload == "rpc" { samples == 22 } else { samples > 0 }, "{workload}");
    }
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0, "the folder's files are used");
    let locks = run(comity().args(["bench", "run", "locks", "--quiet", "--vers", "3", &url]));
    assert_eq!(locks.code, Some(1), "version 3 has no locks here");
    assert!(locks.err.contains("?vers=4.1"), "{}", locks.err);
}

#[test]
fn peers_take_turns_in_different_versions_and_count_operations() {
    let place = Place::new();
    let output = place.path("result");
    let mut command = comity();
    command.args(["bench", "run", "postmark", "--rounds", "1", "--files", "20"]);
    command.args(["--transactions", "20", "--quiet", "--vers", "4.1"]);
    command.args(["peer:memory", "peer:comity?vers=3"]).arg("--output").arg(&output);
    let said = run(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let rounds = &result(&output)["workloads"][0]["rounds"];
    let count = |round: usize, kind: &str| rounds[round]["calls"][kind].as_u64().unwrap_or(0);
    assert!(count(0, "OPEN") >= 20 && count(0, "CREATE") <= 1, "{}", rounds[0]["calls"]);
    assert!(count(1, "CREATE") >= 20 && count(1, "OPEN") == 0, "{}", rounds[1]["calls"]);
}

#[test]
fn an_open_loop_measures_latency_from_the_time_at_which_a_call_is_due() {
    let place = Place::new();
    let output = place.path("result");
    let mut command = comity();
    command.args(["bench", "run", "rpc", "--rate", "2000", "--seconds", "0.5", "--rounds", "1"]);
    command.args(["--operations", "null,getattr", "--connections", "2", "--depths", "16"]);
    command.arg(format!("peer:memory={}", place.path("").display()));
    let said = run(command.arg("--output").arg(&output));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let round = &result(&output)["workloads"][0]["rounds"][0];
    for latency in round["latencies"].as_array().unwrap() {
        assert_eq!(latency["from_due_time"], true);
        let buckets = latency["buckets"].as_array().unwrap();
        let calls: u64 = buckets.iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
        // 1,000 calls are due on average; the gaps between them are random.
        assert!((800..1200).contains(&calls), "{calls} calls");
    }
}

#[test]
fn an_interrupted_run_leaves_a_valid_result_and_nothing_else() {
    interrupted(&[Signal::INT]);
}

/// timeout(1) sends the signal to the program and then to its process group.
#[test]
fn two_signals_at_once_count_as_one() {
    interrupted(&[Signal::TERM, Signal::TERM]);
}

/// The program that the run has started interrupts the run and fails itself, as after ctrl-C in a
/// terminal.
#[test]
fn a_workload_that_ends_because_the_user_ends_the_run_has_not_failed() {
    let place = Place::new();
    let tree = place.path("tree");
    fs::create_dir(&tree).unwrap();
    let mut command = comity();
    command.args(["bench", "run", "compile", "--command", "kill -INT $PPID; sleep 1; exit 3"]);
    command.arg("--tree").arg(tree).arg(place.data()).arg("--output").arg(place.path("result"));
    let said = run(&mut command);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let last = said.err.lines().last().unwrap_or_default();
    assert!(last.contains("--resume goes on: interrupted: compile on "), "{last}");
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0, "files are left");
}

fn interrupted(signals: &[Signal]) {
    let place = Place::new();
    let output = place.path("result");
    let mut command = comity();
    command.args(["bench", "run", "lsr", "--users", "1", "--rounds", "10000"]).arg(place.data());
    command.arg("--output").arg(&output).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    await_round(&output);
    for signal in signals {
        kill_process(Pid::from_child(&child), *signal).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let said = child.wait_with_output().unwrap();
    let said = (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned());
    assert_eq!(said.0, Some(1), "{}", said.1);
    assert!(said.1.contains("interrupted") && said.1.contains("--resume"), "{}", said.1);
    let result = result(&output);
    assert_eq!(result["complete"], false);
    assert_eq!(result["workloads"][0]["rounds"][0]["complete"], true);
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0, "files are left");
}

#[test]
fn the_rounds_before_a_server_goes_away_are_kept() {
    for version in ["3", "4.1"] {
        let place = Place::new();
        let output = place.path("result");
        let line = format!("{} 127.0.0.1(rw,insecure,no_root_squash)\n", place.data().display());
        let exports = place.write("exports", &line).display().to_string();
        let server = Running::start(&mut place.serve(&["--exports", &exports, "--in-memory"]));
        let url = format!("nfs://127.0.0.1:{}{}", server.port, place.data().display());
        let mut command = comity();
        command.args(["bench", "run", "lsr", "--users", "1", "--rounds", "10000"]);
        command.args(["--files", "100", "--vers", version, &url]);
        command.arg("--output").arg(&output).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        await_round(&output);
        drop(server);
        let said = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(1), "{told}");
        let last = told.lines().last().unwrap_or_default();
        let gone = ["the server closed the connection", "nobody answers there"];
        assert!(gone.iter().any(|words| last.contains(words)), "{version}: {told}");
        assert!(last.contains("--resume"), "{version}: {told}");
        let result = result(&output);
        assert_eq!(result["complete"], false);
        assert_eq!(result["failure"]["workload"], "lsr");
        assert_eq!(result["workloads"][0]["rounds"][0]["complete"], true);
    }
}

#[test]
fn the_error_about_a_server_that_refuses_access_says_what_to_do() {
    let place = Place::new();
    let line = format!("{} 127.0.0.1(ro,insecure)\n", place.data().display());
    let exports = place.write("exports", &line).display().to_string();
    let server = Running::start(&mut place.serve(&["--exports", &exports]));
    for version in ["3", "4.1"] {
        let (output, host) = (place.path(version), format!("nfs://127.0.0.1:{}", server.port));
        for (path, names) in [
            (place.data(), "name who may write there by --uid and --gid"),
            (place.path("elsewhere"), "is it exported to this machine?"),
        ] {
            let url = format!("{host}{}?vers={version}", path.display());
            let said =
                run(comity().args(["bench", "run", "lsr", "--output"]).arg(&output).arg(url));
            assert_eq!(said.code, Some(1), "{version}: {}", said.err);
            assert!(said.err.contains(names), "{version}: {}", said.err);
        }
    }
}

/// Waits until a run has measured something.
fn await_round(output: &Path) {
    let start = Instant::now();
    let rounds = || result(output)["workloads"][0]["rounds"].as_array().unwrap().len();
    while !output.join("result.json").exists() || rounds() == 0 {
        assert!(start.elapsed() < PATIENCE, "no round ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Writes a result whose listings all took about `about` seconds, with little variation between
/// rounds.
fn doctored(from: &Path, to: &Path, about: f64) {
    let mut result = result(from);
    for round in result["workloads"][0]["rounds"].as_array_mut().unwrap() {
        let seconds = about + round["round"].as_f64().unwrap();
        for sample in round["samples"].as_array_mut().unwrap() {
            let rate = sample["metric"] == "entries";
            sample["value"] = if rate { 1e6 / seconds } else { seconds }.into();
        }
    }
    fs::create_dir(to).unwrap();
    fs::write(to.join("result.json"), result.to_string()).unwrap();
}

#[test]
fn results_are_compared_and_the_exit_code_says_whether_one_is_worse() {
    let place = Place::new();
    let output = place.path("result");
    let mut command = comity();
    command.args(["bench", "run", "lsr", "--files", "20", "--users", "1", "--rounds", "4"]);
    let ran = run(command.arg("--quiet").arg(place.data()).arg("--output").arg(&output));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let [fast, slow] = ["fast", "slow"].map(|name| place.path(name));
    doctored(&output, &fast, 100.0);
    doctored(&output, &slow, 200.0);
    let compare = |a: &Path, b: &Path, over: &[&str]| {
        run(comity().args(["bench", "compare"]).args([a, b]).args(over))
    };
    let told = compare(&fast, &slow, &[]);
    assert_eq!(told.code, Some(0), "a table alone judges nothing: {}", told.err);
    assert!(told.out.contains("worse"), "{}", told.out);
    assert_eq!(compare(&fast, &slow, &["--fail-over", "5%"]).code, Some(1));
    assert_eq!(compare(&slow, &fast, &["--fail-over", "5%"]).code, Some(0), "it is better");
    assert_eq!(compare(&fast, &fast, &["--fail-over", "5%"]).code, Some(0), "it is the same");
    let json = compare(&fast, &slow, &["--json"]);
    assert!(serde_json::from_str::<Value>(&json.out).is_ok(), "{}", json.out);
    let none = compare(&fast, &place.path("none"), &[]);
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("there is no result in"), "{}", none.err);
}

#[test]
fn a_run_is_continued_where_it_ended_and_files_are_kept_if_asked() {
    let place = Place::new();
    let output = place.path("result");
    let go = |more: &[&str]| {
        let mut command = comity();
        command.args(["bench", "run", "lsr", "--files", "20", "--users", "1", "--rounds", "2"]);
        run(command.arg(place.data()).arg("--output").arg(&output).args(more))
    };
    assert_eq!(go(&[]).code, Some(0));
    let again = go(&[]);
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("--resume") && again.err.contains("--output"), "{}", again.err);
    // The second round is removed from the result.
    let mut cut = result(&output);
    cut["workloads"][0]["rounds"].as_array_mut().unwrap().pop();
    cut["complete"] = false.into();
    fs::write(output.join("result.json"), cut.to_string()).unwrap();
    let on = go(&["--resume", "--keep"]);
    assert_eq!(on.code, Some(0), "{}", on.err);
    assert!(on.err.contains("round 1: is there"), "{}", on.err);
    assert!(on.err.contains("kept: comity-bench-"), "{}", on.err);
    let whole = result(&output);
    assert_eq!(whole["complete"], true);
    assert_eq!(whole["workloads"][0]["rounds"][0], cut["workloads"][0]["rounds"][0]);
    assert_eq!(whole["workloads"][0]["rounds"].as_array().unwrap().len(), 2);
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 1, "nothing was kept");
    let not_empty = go(&["--resume"]);
    assert_eq!(not_empty.code, Some(1), "what was kept is in the way");
    assert!(not_empty.err.contains("--here"), "{}", not_empty.err);
    assert_eq!(go(&["--resume", "--here"]).code, Some(0));
    let seed = go(&["--resume", "--here", "--seed", "2"]);
    assert_eq!(seed.code, Some(1));
    assert!(seed.err.contains("--seed 1"), "{}", seed.err);
}
