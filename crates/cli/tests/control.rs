//! A running server is asked and controlled: reload, status, log, exports, metrics.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::raw::Raw;
use common::{NOBODY, Place, Running, Said, comity, metrics, run};
use rustix::process::Signal;
use serde_json::Value;

fn ask(place: &Place, words: &[&str]) -> Said {
    run(comity().args(words).arg("--state-dir").arg(place.state()))
}

fn json(said: &Said) -> Value {
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn commands_fail_without_a_running_server() {
    let place = Place::new();
    for words in [
        &["reload"][..],
        &["status"],
        &["log", "info"],
        &["exports", "--client", "::1"],
        &["clients"],
        &["clients", "--json"],
        &["clients", "--waits"],
        &["clients", "1"],
        &["clients", "1", "--json"],
        &["evict", "1"],
        &["migrate", "/srv", "--to", "b"],
        &["load", "advise"],
    ] {
        let said = ask(&place, words);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{words:?}");
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        let expected = "comity: no server runs with the state folder";
        assert!(said.err.starts_with(expected) && said.err.contains("--state-dir"), "{}", said.err);
    }
    Running::start(&mut place.serve_data()).kill();
    assert_eq!(ask(&place, &["status"]).code, Some(1), "its socket is left behind by a crash");
    assert!(Running::start(&mut place.serve_data()).stop().success());
}

/// `comity status | head -1`
#[test]
fn a_closed_pipe_is_not_an_error() {
    let place = Place::new();
    let server = Running::start(&mut place.serve_data());
    for words in [&["status"][..], &["status", "--json"], &["log"], &["reload"], &["clients"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = comity();
        command.args(words).arg("--state-dir").arg(place.state());
        let ended = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), errors.as_str()), (Some(0), ""), "{words:?}");
    }
    assert!(server.stop().success());
}

#[test]
fn reload_says_what_is_wrong_and_fails() {
    let place = Place::new();
    let line = format!("{} 127.0.0.1(rw,insecure)\n", place.data().display());
    let file = place.write("my.exports", &line);
    let server = Running::start(place.serve(&["--exports"]).arg(&file));
    let said = ask(&place, &["reload"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "reloaded; exports in force: 1\n"));

    fs::write(&file, format!("{line}{} *(rw,bogus)\n", place.data().display())).unwrap();
    let said = ask(&place, &["reload"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    let place_of_it = format!("{}:2:", file.display());
    assert!(said.err.starts_with(&place_of_it), "{}", said.err);
    assert!(said.err.contains("unknown option \"bogus\""), "{}", said.err);
    assert!(said.err.ends_with("the old configuration stays in force\n"), "{}", said.err);
    assert!(Raw::connect(server.port, NOBODY).mount(&place.data()).is_ok());

    let said = ask(&place, &["reload", "--json"]);
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, answer["ok"].as_bool()), (Some(1), Some(false)));
    assert_eq!(answer["findings"][0]["line"], 2);
}

#[test]
fn status_shows_the_exports_and_the_count_of_calls() {
    let place = Place::new();
    let server = Running::start(&mut place.serve_data());
    let mut client = Raw::connect(server.port, NOBODY);
    client.mount(&place.data()).unwrap();
    let status = json(&ask(&place, &["status", "--json"]));
    assert_eq!(status["process"], server.process());
    assert_eq!(status["exports"][0], place.data().to_str().unwrap());
    assert_eq!(status["connections"], 1);
    assert!(status["calls"].as_u64().unwrap() >= 1, "{status}");
    assert_eq!(status["panics"], 0);
    let said = ask(&place, &["status"]);
    assert!(said.out.contains(&format!("process: {}\n", server.process())), "{}", said.out);
}

#[test]
fn the_log_level_changes_while_the_server_runs() {
    let place = Place::new();
    let log = place.path("log");
    let errors = fs::File::create(&log).unwrap();
    let server = Running::start_with_log(&mut place.serve_data(), errors);
    assert_eq!(ask(&place, &["log"]).out, "info\n");
    let said = ask(&place, &["log", "comity=debug,warn"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let told = ask(&place, &["log"]).out;
    assert!(told.contains("comity=debug") && told.contains("warn"), "{told}");
    assert!(server.stop().success());
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
    assert!(text.contains("log level changed"), "{text}");
}

#[test]
fn a_running_server_lists_its_exports() {
    let place = Place::new();
    let _server = Running::start(&mut place.serve_data());
    let answer = json(&ask(&place, &["exports", "--client", "127.0.0.7", "--json"]));
    assert_eq!(answer["exports"][0]["client"], "127.0.0.0/8");
    let said = ask(&place, &["exports", "--client", "192.0.2.1"]);
    assert_eq!(said.out, "nothing is offered to 192.0.2.1\n");
}

#[test]
fn the_service_manager_is_notified() {
    let place = Place::new();
    let path = place.path("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let heard = || {
        let mut said = [0; 1024];
        let length = manager.recv(&mut said).unwrap();
        String::from_utf8(said[..length].to_vec()).unwrap()
    };
    let server = Running::start(place.serve_data().env("NOTIFY_SOCKET", &path));
    assert_eq!(heard(), "READY=1\n");
    assert_eq!(ask(&place, &["reload"]).code, Some(0));
    let reloading = heard();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(heard(), "READY=1\n");
    assert!(server.stop().success());
    assert_eq!(heard(), "STOPPING=1\n");
}

#[test]
fn metrics_count_calls_by_operation_status_and_export() {
    let place = Place::new();
    let server = Running::start(place.serve_data().args(["--metrics", "127.0.0.1:0"]));
    let mut client = Raw::connect(server.port, NOBODY);
    let root = client.mount(&place.data()).unwrap();
    client.getattr(&root).unwrap();
    client.getattr(&root).unwrap();
    client.getattr(b"no handle").unwrap_err();
    let page = metrics(&server);
    let count = |labels: &[&str]| {
        let line = page.lines().find(|line| {
            line.starts_with("comity_rpc_calls_total{") && labels.iter().all(|l| line.contains(l))
        });
        let line = line.unwrap_or_else(|| panic!("no {labels:?} in\n{page}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let export = format!("export=\"{}\"", place.data().display());
    let getattr = "procedure=\"GETATTR\"";
    assert_eq!(count(&["program=\"nfs\"", "version=\"3\"", getattr, "\"OK\"", &export]), 2.0);
    assert_eq!(count(&["program=\"nfs\"", getattr, "\"BADHANDLE\""]), 1.0);
    assert_eq!(count(&["program=\"mount\"", "procedure=\"MNT\"", "\"OK\"", &export]), 1.0);
    assert!(page.contains("comity_rpc_call_duration_seconds_bucket{"), "{page}");
}

#[test]
fn a_command_to_a_stopped_server_gives_up_and_says_what_to_do() {
    let place = Place::new();
    let server = Running::start(&mut place.serve_data());
    server.signal(Signal::STOP);
    let begun = Instant::now();
    let said = ask(&place, &["status"]);
    let took = begun.elapsed();
    server.signal(Signal::CONT);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(said.err.contains("did not answer within 5 s"), "{}", said.err);
    assert!(said.err.contains("look at its process and its log"), "{}", said.err);
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(ask(&place, &["status"]).code, Some(0), "it goes on");
}

/// A user's public key.
const KEY: &str = "ed25519:8kB2Du69JI7e0GZr3c0AJe2QcXehUYkOlm1npgW8MIU=";

/// Every command that asks a server at its control socket.
const COMMANDS: &[&[&str]] = &[
    &["reload"],
    &["reload", "--json"],
    &["status"],
    &["status", "--json"],
    &["log"],
    &["log", "info"],
    &["exports", "--client", "::1"],
    &["explain", "/srv", "f", "--from", "::1", "--uid", "1", "--gid", "1"],
    &["clients"],
    &["clients", "--json"],
    &["clients", "--waits"],
    &["clients", "1"],
    &["clients", "1", "--json"],
    &["migrate", "/srv", "--to", "b"],
    &["migrate", "/srv", "--to", "b", "--dry-run"],
    &["migrate", "--cancel"],
    &["load", "advise"],
    &["load", "advise", "--auto"],
    &["evict", "1"],
    &["top", "--once"],
    &["account", "bind", "root", KEY],
    &["account", "unbind", KEY],
    &["account", "list"],
    &["revoke", "--admin", KEY],
    &["why", "/srv/f", "--admin", "--key", KEY],
    &["cluster", "status"],
    &["cluster", "move", "/srv", "--to", "b"],
    &["cluster", "drain", "b"],
    &["cluster", "undrain", "b"],
    &["placement", "status"],
    &["placement", "add", "b", "192.0.2.1"],
    &["placement", "check"],
    &["placement", "check", "--bytes"],
    &["placement", "drain", "a"],
    &["placement", "label"],
    &["placement", "rebuild"],
    &["placement", "resilver"],
];

/// Every command that asks a server over the network as the owner of a key.
const NETWORK_COMMANDS: &[&[&str]] = &[
    &["submit", "credential"],
    &["grants"],
    &["grants", "--drop", "0000000000000000000000000000000000000000000000000000000000000000"],
    &["fetch", "/srv/f"],
    &["whoami"],
    &["revoke", KEY],
    &["why", "/srv/f"],
];

/// Commands that ask the program of a mount, or its server through the mount:
/// `a_mount_of_a_server_that_does_not_answer_ends_within_its_bound` and the tests beside it.
const MOUNT_COMMANDS: &[&str] = &["mount", "umount", "cache", "id", "grant"];

/// Commands that wait for nobody, and `cluster addresses`, which asks until it is ended.
const OTHERS: &[&str] = &[
    "serve",
    "check",
    "key",
    "bench",
    "completions",
    "man",
    "help",
    "load calibrate",
    "cluster addresses",
];

#[test]
fn every_command_stands_in_a_list_by_whom_it_waits_for() {
    for name in commands_below(&[]) {
        if [MOUNT_COMMANDS, OTHERS].concat().contains(&&*name) {
            continue;
        }
        let mut parts = commands_below(&[&name]);
        parts.retain(|part| part != "help" && !OTHERS.contains(&&*format!("{name} {part}")));
        let asks = [COMMANDS, NETWORK_COMMANDS].concat();
        assert!(asks.iter().any(|words| words[0] == name), "{name} stands in a list");
        for part in parts {
            let is_listed = asks.iter().any(|words| words.starts_with(&[&*name, &*part]));
            assert!(is_listed, "{name} {part} stands in a list");
        }
    }
}

/// Returns the commands that the help of a command lists.
fn commands_below(words: &[&str]) -> Vec<String> {
    let said = run(comity().arg("help").args(words));
    let listed = said.out.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // The description of a command may go on in further lines, which are indented more.
    let first = listed.filter(|line| !line.starts_with("   "));
    first.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Runs commands at once, each of which must fail; returns their errors.
fn errors_of(
    commands: &[&'static [&'static str]],
    perform: impl Fn(&[&str]) -> Said + Sync,
) -> Vec<String> {
    let perform = &perform;
    std::thread::scope(|scope| {
        let start = |words: &&'static [&'static str]| {
            let words = *words;
            scope.spawn(move || {
                let said = perform(words);
                assert_eq!(
                    (said.code, said.out.as_str()),
                    (Some(1), ""),
                    "{words:?}: {}",
                    said.err
                );
                format!("{words:?}: {}", said.err)
            })
        };
        let started: Vec<_> = commands.iter().map(start).collect();
        started.into_iter().map(|ended| ended.join().unwrap()).collect()
    })
}

#[test]
fn every_network_command_gives_up_a_server_that_hangs_after_10_seconds() {
    let place = Place::new();
    place.write("credential", "");
    let key = place.path("key.pem");
    assert_eq!(run(comity().args(["key", "new"]).arg(&key)).code, Some(0));
    // A server that hangs accepts connections into its backlog.
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = hung.local_addr().unwrap().to_string();
    let begun = Instant::now();
    let errors = errors_of(NETWORK_COMMANDS, |words| {
        let mut command = comity();
        command.args(words).args(["--server", &server]).current_dir(place.path(""));
        let own = if words[0] == "why" { "--own-key" } else { "--key" };
        run(command.arg(own).arg(&key).env("XDG_CONFIG_HOME", place.path("")))
    });
    for error in errors {
        let expected = "did not answer within 10 s: it is stopped, hangs or is overloaded; try";
        assert!(error.contains(&server) && error.contains(expected), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
}

#[test]
fn every_control_command_gives_up_a_server_that_hangs_after_5_seconds() {
    let place = Place::new();
    fs::create_dir(place.state()).unwrap();
    // A program that hangs accepts connections into its backlog.
    let _hung = UnixListener::bind(place.state().join("control.sock")).unwrap();
    let begun = Instant::now();
    for error in errors_of(COMMANDS, |words| ask(&place, words)) {
        let expected = "did not answer within 5 s: it is stopped, hangs or is overloaded; look";
        assert!(error.contains(expected), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
