//! The command `comity bench dirsim`: its table, JSON, plot, traces and errors.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;

use serde_json::Value;

use common::{Said, comity, run};

fn dirsim(arguments: &[&str]) -> Said {
    run(comity().args(["bench", "dirsim"]).args(arguments))
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let said = dirsim(&[arguments, &["--json"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    told["rows"].as_array().unwrap().clone()
}

const MAIL: [&str; 4] = ["--pattern", "mail", "--rounds", "20"];

#[test]
fn each_policy_has_a_row_for_each_number_of_clients_directories_and_delays() {
    let varied = ["--clients", "2", "--clients", "4", "--notify-delay", "recall"];
    let more =
        ["--notify-delay", "0.5", "--cached-directories", "100", "--cached-directories", "200"];
    let rows = rows(&[&MAIL[..], &varied, &more].concat());
    assert_eq!(rows.len(), 4 * 2 * 2 * 2);
    let of = |row: &Value| {
        let delay = row["notification_delay_seconds"].as_f64();
        let text = |value: &Value| value.to_string();
        (text(&row["policy"]), text(&row["clients"]), text(&row["cached_directories"]), delay)
    };
    let mut seen: Vec<_> = rows.iter().map(of).collect();
    seen.dedup();
    assert_eq!(seen.len(), rows.len(), "{seen:?}");
    for row in &rows {
        let calls = |name: &str| row["tally"]["calls"][name].as_u64().unwrap();
        let is_recalled = row["notification_delay_seconds"].is_null();
        assert!(!is_recalled || calls("notifications") == 0, "{row}");
        assert!(is_recalled || row["policy"] == "never" || calls("notifications") > 0, "{row}");
        assert!(row["policy"] != "never" || row["saved"] == 0.0, "{row}");
    }
}

#[test]
fn the_table_says_what_the_json_says() {
    let said = dirsim(&MAIL);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let heads: Vec<&str> = said.out.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(heads[..3], ["policy", "calls", "saved"], "nothing was given more than once");
    for row in rows(&MAIL) {
        let policy = row["policy"].as_str().unwrap();
        let line = said.out.lines().find(|line| line.starts_with(policy)).unwrap();
        let counts = &row["tally"]["calls"];
        let total: u64 = counts.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(line.split_whitespace().nth(1), Some(&*total.to_string()), "{line}");
        assert_eq!(line.contains(">90 %"), policy == "always", "{line}");
    }
}

#[test]
fn a_pattern_that_was_written_to_a_file_has_the_same_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace").display().to_string();
    let made = rows(&[&MAIL[..], &["--write", &path]].concat());
    assert_eq!(rows(&[&path]), made);
}

#[test]
fn a_plot_has_a_line_for_each_policy_that_grants() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.svg").display().to_string();
    let clients = ["--clients", "1", "--clients", "3", "--plot", &path];
    let said = dirsim(&[&MAIL[..], &clients].concat());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let drawn = fs::read_to_string(path).unwrap();
    for policy in ["always", "second-ask", "adaptive"] {
        assert!(drawn.contains(policy), "{policy}");
    }
    assert!(drawn.contains("clients") && !drawn.contains("never"), "{drawn}");
}

#[test]
fn a_trace_with_an_error_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace").display().to_string();
    fs::write(&path, "bad line\n").unwrap();
    let said = dirsim(&[&path]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("trace: line 1: expected seconds"), "{}", said.err);
    let said = dirsim(&[&path, "--format", "strace"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("no line is as"), "{}", said.err);
    let said = dirsim(&[&MAIL[..], &["--notify-delay", "soon"]].concat());
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("nor `recall`"), "{}", said.err);
}
