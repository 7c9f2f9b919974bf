//! The clients of a running server and their state: `comity clients`, `comity evict`, and the
//! metrics.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use comity_proto::nfs4::{NfsLockType4, Nfsstat4, share};
use common::four::Four;
use common::raw::stream_from;
use common::{NOBODY, PATIENCE, Place, Running, Said, comity, metrics, run, wait_until};
use serde_json::Value;

fn ask(place: &Place, words: &[&str]) -> Said {
    run(comity().args(words).arg("--state-dir").arg(place.state()))
}

fn json(place: &Place, words: &[&str]) -> Value {
    let said = ask(place, &[words, &["--json"]].concat());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    serde_json::from_str(&said.out).unwrap()
}

/// A server folder whose data everybody may change.
fn place() -> Place {
    let place = Place::new();
    fs::set_permissions(place.data(), Permissions::from_mode(0o777)).unwrap();
    place
}

fn id(client: &Four) -> String {
    format!("{:016x}", client.clientid)
}

#[test]
fn clients_are_shown_with_their_state_and_the_clients_they_wait_for() {
    let place = place();
    let server = Running::start(&mut place.serve_data());
    assert_eq!(json(&place, &["clients"]), Value::Array(Vec::new()));
    let mut one = Four::connect(server.port, NOBODY, "one");
    let mut two = Four::connect(server.port, NOBODY, "two");
    let path = place.data().join("file");
    let file = one.open(&path, share::BOTH | share::WANT_NO_DELEG).unwrap();
    one.lock(&file, NfsLockType4::Write, (10, 5)).unwrap();
    let same = two.open(&path, share::BOTH | share::WANT_NO_DELEG).unwrap();
    let denied = two.lock(&same, NfsLockType4::WriteWait, (0, u64::MAX));
    assert_eq!(denied, Err(Nfsstat4::Denied));

    let all = json(&place, &["clients"]);
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    assert_eq!((&all[0]["client"], &all[0]["name"]), (&id(&one).into(), &"one".into()));
    assert_eq!((&all[0]["address"], &all[0]["spoken"]), (&"127.0.0.1".into(), &"4.1".into()));
    let counts = |at: usize| ["sessions", "opens", "locks", "waits"].map(|name| &all[at][name]);
    assert_eq!(counts(0), [1, 1, 1, 0]);
    assert_eq!(counts(1), [1, 1, 0, 1]);
    assert_eq!(all[1]["waits_for"][0], id(&one).as_str());
    let said = ask(&place, &["clients"]).out;
    let expected = format!("two; waits for {}", id(&one));
    assert!(said.lines().count() == 3 && said.contains(&expected), "{said}");

    let told = json(&place, &["clients", &id(&one)]);
    let fileid = fs::metadata(&path).unwrap().ino();
    assert_eq!(told["sessions"][0]["connections"], 1);
    assert_eq!(told["copies"], Value::Array(Vec::new()));
    assert_eq!(told["states"][0]["kind"], "open");
    assert_eq!(told["states"][0]["fileid"], fileid);
    assert_eq!(told["states"][0]["export"], place.data().to_str().unwrap());
    assert_eq!(told["states"][1]["ranges"][0]["first"], 10);
    assert_eq!(told["states"][1]["ranges"][0]["last"], 14);
    let said = ask(&place, &["clients", &id(&one)]).out;
    let expected = format!("fileid {fileid}: locked 10-14 w by locker, for ");
    assert!(said.contains(&expected), "{said}");

    let said = ask(&place, &["clients", "--waits"]).out;
    let expected = format!("{} waits for {}: to lock 0- w, ", id(&two), id(&one));
    assert!(said.starts_with(&expected) && said.lines().count() == 1, "{said}");
    assert_eq!(json(&place, &["clients", "--waits", &id(&one)])["waits_count"], 0);
}

#[test]
fn an_evicted_client_gets_badsession() {
    let place = place();
    let server = Running::start(&mut place.serve_data());
    let mut one = Four::connect(server.port, NOBODY, "one");
    let mut two = Four::connect(server.port, NOBODY, "two");
    let path = place.data().join("file");
    let file = one.open(&path, share::BOTH | share::WANT_NO_DELEG).unwrap();
    one.lock(&file, NfsLockType4::Write, (0, 10)).unwrap();
    let same = two.open(&path, share::BOTH | share::WANT_NO_DELEG).unwrap();
    assert_eq!(two.lock(&same, NfsLockType4::Write, (0, 1)), Err(Nfsstat4::Denied));

    let said = ask(&place, &["evict", &id(&one)]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let expected = format!("evicted: {} from 127.0.0.1; freed opens: 1, locks: 1", id(&one));
    assert!(said.out.starts_with(&expected), "{}", said.out);
    assert_eq!(one.open(&path, share::READ).unwrap_err(), Nfsstat4::BadSession);
    two.lock(&same, NfsLockType4::Write, (0, 1)).unwrap();
    one.introduce("one").unwrap();
    assert_eq!(json(&place, &["clients"]).as_array().unwrap().len(), 2, "it may come again");

    let said = ask(&place, &["evict", "7"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert_eq!(said.err, "comity: there is no client 7; `comity clients` shows all\n");
    let said = ask(&place, &["clients", "me"]);
    assert!(said.err.starts_with("comity: \"me\" is no client's number"), "{}", said.err);
}

#[test]
fn a_recall_of_a_delegation_is_counted() {
    let place = place();
    let server = Running::start(place.serve_data().args(["--metrics", "127.0.0.1:0"]));
    let mut one = Four::connect(server.port, NOBODY, "one");
    let mut two = Four::connect(server.port, NOBODY, "two");
    let path = place.data().join("file");
    let file = one.open(&path, share::BOTH).unwrap();
    let delegation = file.delegation.unwrap();
    assert_eq!(two.open(&path, share::READ).unwrap_err(), Nfsstat4::Delay);
    assert!(one.listen(PATIENCE, |one| one.recalled == [delegation]));

    let said = ask(&place, &["clients", &id(&one)]).out;
    assert!(said.contains("delegation for rw, recalled ") && said.contains(" ago, for "), "{said}");
    let said = ask(&place, &["clients", "--waits"]).out;
    let expected = format!("{} waits for {}: for the delegation for rw", id(&two), id(&one));
    assert!(said.starts_with(&expected), "{said}");

    one.give_back(&file, delegation).unwrap();
    two.open(&path, share::READ | share::WANT_NO_DELEG).unwrap();
    one.lock(&file, NfsLockType4::Write, (0, 10)).unwrap();
    let page = metrics(&server);
    let number = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse::<u64>().unwrap()
    };
    let now = ["clients", "sessions", "opens", "locks", "delegations", "lock_waiters"];
    assert_eq!(now.map(|name| number(&format!("comity_{name}"))), [2, 2, 2, 1, 0, 0]);
    let done = ["sent", "returned", "timed_out"];
    assert_eq!(done.map(|name| number(&format!("comity_recalls_{name}_total"))), [1, 1, 0]);
    assert_eq!(number("comity_grace_left_seconds"), 0);
    assert!(page.contains("# TYPE comity_recalls_sent_total counter\n"), "{page}");
    assert!(page.contains("# TYPE comity_delegations gauge\n"), "{page}");
}

#[test]
fn delegations_stay_below_their_limit_and_some_are_recalled_before() {
    let place = place();
    let delegations_max = |max: &str| {
        let mut command = place.serve_data();
        command.args(["--delegations-max", max, "--metrics", "127.0.0.1:0"]);
        Running::start(&mut command)
    };
    let delegates = |client: &mut Four, name: &str| {
        client.open(&place.data().join(name), share::BOTH).unwrap().delegation.is_some()
    };
    let server = delegations_max("1");
    let mut one = Four::connect(server.port, NOBODY, "one");
    assert!(delegates(&mut one, "first"));
    assert!(!delegates(&mut one, "second"));
    wait_until("the question", || metrics(&server).contains("\ncomity_recalls_any_total 1\n"));
    assert_eq!(server.stop().code(), Some(0));

    let server = delegations_max("0");
    let mut one = Four::connect(server.port, NOBODY, "one");
    assert!(!delegates(&mut one, "third"));
}

#[test]
fn sessions_reserve_no_more_reply_cache_than_the_limit() {
    let place = place();
    let mut command = place.serve_data();
    // A session with four slots of four kilobytes takes a little more than a quarter of the limit.
    command.args(["--reply-cache-bytes-max", "65536", "--metrics", "127.0.0.1:0"]);
    let server = Running::start(&mut command);
    // The clients of one address share one quota.
    let connect = |last| {
        let stream = stream_from([127, 0, 0, last], server.port);
        Four::try_on(stream, NOBODY, &last.to_string()).unwrap()
    };
    let mut sessions = [1, 2, 3, 4, 5].map(connect);
    assert_eq!(
        sessions[0].introduce("six"),
        Err(Nfsstat4::Delay),
        "the last two sessions have one slot each"
    );
    let page = metrics(&server);
    let reserved = page.lines().find_map(|line| line.strip_prefix("comity_reply_cache_bytes "));
    let reserved: u32 = reserved.unwrap().parse().unwrap();
    assert!((49_152..=65_536).contains(&reserved), "{reserved}");
    let said = run(comity().args(["serve", "--reply-cache-bytes-max", "65535", "/tmp"]));
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("at least 65536"), "{}", said.err);
}

/// The list of clients needs more than one reply.
#[test]
fn many_clients_are_shown_page_by_page() {
    let place = place();
    let server = Running::start(&mut place.serve_data());
    let mut client = Four::connect(server.port, NOBODY, "first");
    (1..600).for_each(|number| client.introduce(&format!("client {number}")).unwrap());
    let all = json(&place, &["clients"]);
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|client| client["name"].as_str().unwrap()).collect();
    assert_eq!((names.len(), names[0], names[599]), (600, "first", "client 599"));
    assert_eq!(ask(&place, &["clients"]).out.lines().count(), 601);
    let mut client = Four::connect(server.port, NOBODY, "with many files");
    for number in 0..1100 {
        let path = place.data().join(format!("file-{number}"));
        client.open(&path, share::BOTH | share::WANT_NO_DELEG).unwrap();
    }
    let told = json(&place, &["clients", &id(&client)]);
    assert_eq!(told["states"].as_array().unwrap().len(), 1100);
}
