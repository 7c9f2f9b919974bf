//! Manual pages, completions and the systemd unit exist, are current and well formed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Place, comity, run};

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn the_pages_in_the_tree_are_those_the_program_writes() {
    let place = Place::new();
    let folder = place.path("man");
    let said = run(comity().arg("man").arg("--out").arg(&folder));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let (written, kept) = (pages(&folder), pages(&checkout().join("docs/man")));
    let names = |pages: &BTreeMap<String, String>| pages.keys().cloned().collect::<Vec<_>>();
    let remedy = "run: cargo run -- man --out docs/man";
    assert_eq!(names(&written), names(&kept), "{remedy}");
    for (name, page) in &written {
        assert!(page == &kept[name], "docs/man/{name} is out of date; {remedy}");
    }
}

#[test]
fn pages_are_well_formed() {
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("skipped: groff is not installed");
        return;
    }
    for name in pages(&checkout().join("docs/man")).keys() {
        let page = checkout().join("docs/man").join(name);
        let said = run(Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(&page));
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{name}");
        assert!(fs::read_to_string(&page).unwrap().contains("\n.SH NAME\n"), "{name}");
    }
}

#[test]
fn a_page_is_printed_and_an_unknown_one_is_named() {
    let said = run(comity().args(["man", "comity-serve.1"]));
    assert_eq!(said.code, Some(0));
    assert!(said.out.contains("drain\\-seconds"), "{}", said.out);
    let said = run(comity().args(["man", "comity.9"]));
    assert_eq!(said.code, Some(1));
    assert!(said.err.starts_with("comity: there is no page comity.9; there are "), "{}", said.err);
}

#[test]
fn there_are_completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = run(comity().args(["completions", shell]));
        assert_eq!(said.code, Some(0), "{shell}");
        assert!(said.out.contains("drain-seconds"), "{shell}");
    }
}

#[test]
fn systemd_accepts_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    }
    for name in ["comity.service", "comity-addresses@.service"] {
        assert_systemd_accepts(name);
    }
}

fn assert_systemd_accepts(name: &str) {
    let place = Place::new();
    let unit = fs::read_to_string(checkout().join("packaging").join(name)).unwrap();
    let here = unit.replace("/usr/bin/comity", env!("CARGO_BIN_EXE_comity"));
    let here = place.write(&name.replace('@', "@eth0"), &here);
    let said = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(here));
    let about_it = |line: &&str| line.contains("comity");
    let complaints: Vec<&str> = said.err.lines().filter(about_it).collect();
    assert_eq!((said.code, complaints), (Some(0), vec![]), "{name}: {}", said.err);
}

#[test]
fn the_dashboard_uses_metrics_that_exist() {
    let text = fs::read_to_string(checkout().join("packaging/grafana.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(dashboard["title"], "Comity");
    let source = |path: &str| fs::read_to_string(checkout().join(path)).unwrap();
    let spelled = source("crates/server/src/metrics/text.rs")
        + &source("crates/daemon/src/metrics.rs")
        + &source("crates/daemon/src/load/report.rs");
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = text.split(|c| !is_part(c)).filter(|word| word.starts_with("comity_"));
    for name in names {
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(spelled.contains(&format!("\"{family}\"")), "there is no metric {name}");
    }
}

#[test]
fn the_examples_of_the_pages_are_valid_except_for_missing_folders() {
    let place = Place::new();
    for (page, flag) in [("comity-exports.5", "--exports"), ("comity.toml.5", "--config")] {
        let text = fs::read_to_string(checkout().join("docs/man").join(page)).unwrap();
        let (_, example) = text.split_once(".SH EXAMPLE\n.nf\n").unwrap();
        let (example, _) = example.split_once("\n.fi").unwrap();
        let file = place.write("example", &example.replace("\\-", "-").replace("\\(aq", "'"));
        good_but_for_folders(flag, &file);
    }
}

/// Asserts that all errors are about folders and hosts that this machine does not have.
fn good_but_for_folders(flag: &str, file: &Path) {
    let said = run(comity().arg("check").arg(flag).arg(file));
    let about_it = |line: &&str| line.starts_with(file.to_str().unwrap());
    for line in said.out.lines().filter(about_it) {
        let expected = line.contains(": no such directory") || line.contains(": warning: ");
        assert!(expected, "{line}");
    }
    assert!(said.out.contains(" warning"), "{}", said.out);
}

#[test]
fn the_example_files_are_valid_except_for_missing_folders() {
    for (flag, name) in [("--exports", "exports"), ("--config", "comity.toml")] {
        let file = checkout().join("packaging/examples").join(name);
        good_but_for_folders(flag, &file);
    }
}
