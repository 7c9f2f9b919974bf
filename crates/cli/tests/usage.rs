//! A wrong argument is answered by one line that names it, and exit code 2.

mod common;

use common::{comity, run};

fn refused(arguments: &[&str], names: &str) {
    let said = run(comity().args(arguments));
    assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
    assert_eq!(said.out, "", "{arguments:?}");
    assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {}", said.err);
    assert!(said.err.starts_with("comity: "), "{arguments:?}: {}", said.err);
    assert!(said.err.contains(names), "{arguments:?} does not name {names}: {}", said.err);
}

#[test]
fn a_command_is_needed_and_must_be_one() {
    refused(&[], "serve");
    refused(&["serv"], "did you mean serve?");
    refused(&["help", "nothing"], "nothing");
}

#[test]
fn serve_names_arguments_that_it_does_not_know() {
    refused(&["serve"], "DIR");
    refused(&["serve", "/tmp", "--prot", "3"], "did you mean --port?");
    refused(&["serve", "/tmp", "--port"], "--port");
    refused(&["serve", "/tmp", "--port", "x"], "--port");
    refused(&["serve", "/tmp", "--port", "70000"], "--port");
    refused(&["serve", "/tmp", "--port", "-1"], "-1");
    refused(&["serve", "/tmp", "--listen", "here"], "--listen");
    refused(&["serve", "/tmp", "--metrics", "9100"], "--metrics");
    refused(&["serve", "/tmp", "--threads", "0"], "--threads");
    refused(&["serve", "/tmp", "--threads", "1025"], "--threads");
    refused(&["serve", "/tmp", "--vers", "5"], "--vers");
    refused(&["serve", "/tmp", "--vers", "3,4.3"], "--vers");
    refused(&["serve", "/tmp", "--drain-seconds", "3601"], "--drain-seconds");
    refused(&["serve", "/tmp", "--log", "loud"], "--log");
    refused(&["serve", "/tmp", "--allow", "a b"], "--allow");
    refused(&["serve", "/tmp", "--allow", "192.0.2.0/33"], "--allow");
    refused(&["serve", "/tmp", "--read-only=yes"], "--read-only");
    refused(&["serve", "/tmp", "--state-dir"], "--state-dir");
}

#[test]
fn serve_names_arguments_that_exclude_each_other() {
    refused(&["serve", "/tmp", "--exports", "f"], "--exports");
    refused(&["serve", "/tmp", "--config", "f"], "--config");
    refused(&["serve", "--exports", "f", "--allow", "*"], "--allow");
    refused(&["serve", "/tmp", "--portmap", "--no-register"], "--no-register");
}

#[test]
fn the_other_commands_name_wrong_arguments_too() {
    refused(&["check"], "--exports");
    refused(&["check", "--exprots", "f"], "did you mean --exports?");
    refused(&["exports", "--exports", "f"], "--client");
    refused(&["exports", "--exports", "f", "--client", "x"], "--client");
    refused(&["log", "loud"], "LEVEL");
    refused(&["bench"], "subcommands: list, run, predict");
    refused(&["bench", "compare", "a"], "see comity bench compare --help");
    refused(&["bench", "run", "postmark"], "see comity bench run postmark --help");
    refused(&["status", "--sokcet"], "see comity status --help");
    refused(&["reload", "now"], "now");
    refused(&["status", "--jsn"], "did you mean --json?");
    refused(&["completions", "tcsh"], "SHELL");
    refused(&["man", "comity.7", "--out", "d"], "--out");
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [&["--help"][..], &["serve", "--help"], &["help", "check"]] {
        let said = run(comity().args(arguments));
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(said.out.contains("Usage: comity"), "{}", said.out);
    }
    let said = run(comity().arg("--version"));
    assert_eq!(said.out, format!("comity {}\n", env!("CARGO_PKG_VERSION")));
}
