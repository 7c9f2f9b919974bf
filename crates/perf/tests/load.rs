//! The load generator against the minimal server: every operation is answered, and a wrong answer
//! is noticed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use comity_bench::OPERATIONS;
use comity_bench::call_templates::{CallTemplates, Expectation, Template};
use comity_bench::fixture_tree::{FixtureTree, SMALL_FILES};
use comity_bench::load::{Client, Load, OpenLoad, Stop};
use comity_bench::prober::Pages;
use comity_perf::baseline_server::{attributes_by_name, listing_with_handles, script, serve};

/// A tree of files, and the minimal server on it until the test program ends.
fn served() -> (tempfile::TempDir, FixtureTree, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let layout = FixtureTree::build(folder.path()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tree = layout.clone();
    thread::spawn(move || serve(&tree, listener));
    // Once the server answers, it has opened the files that it needs.
    let nothing = script(&layout, "null".parse().unwrap(), &Pages::default()).unwrap();
    let mut client = Client::connect(address, 1).unwrap();
    client.run(&nothing, Load { depth: 1, stop: Stop::Calls(1) }).unwrap();
    (folder, layout, address)
}

fn pages(layout: &FixtureTree) -> Pages {
    let created = layout.new_directory("created-").unwrap();
    Pages { created, listed: vec![FixtureTree::SMALL.to_owned()] }
}

#[test]
fn every_operation_is_answered_as_often_as_it_is_called() {
    let (_folder, layout, address) = served();
    for (name, operation) in OPERATIONS {
        let script = script(&layout, *operation, &pages(&layout)).unwrap();
        let mut client = Client::connect(address, 3).unwrap();
        let load = Load { depth: 5, stop: Stop::Calls(60) };
        let outcome = client.run(&script, load).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        assert_eq!(outcome.calls, 60, "{name}");
        assert_eq!(outcome.latency.len(), 60, "{name}");
        assert!(outcome.units >= 60, "{name}");
    }
}

#[test]
fn entries_have_handles_and_files_that_are_not_open_are_found() {
    let (_folder, layout, address) = served();
    let mut client = Client::connect(address, 2).unwrap();
    let listed = listing_with_handles(&layout, &[FixtureTree::SMALL.to_owned()]).unwrap();
    let pages = listed.templates.len() as u64;
    let outcome = client.run(&listed, Load { depth: 1, stop: Stop::Calls(pages) }).unwrap();
    assert_eq!(outcome.units, SMALL_FILES as u64 + 2, "`.` and `..` among them");
    let named = attributes_by_name(FixtureTree::SMALL, SMALL_FILES);
    client.run(&named, Load { depth: 4, stop: Stop::Calls(SMALL_FILES as u64) }).unwrap();
    fs::remove_file(layout.small().join(FixtureTree::file(3))).unwrap();
    let error = client.run(&named, Load { depth: 1, stop: Stop::Calls(2_000) }).unwrap_err();
    assert!(error.to_string().contains("wrong reply to call 3"), "{error:#}");
}

#[test]
fn a_new_file_is_there_for_each_create() {
    let (_folder, layout, address) = served();
    let pages = pages(&layout);
    let script = script(&layout, "create".parse().unwrap(), &pages).unwrap();
    let mut client = Client::connect(address, 2).unwrap();
    client.run(&script, Load { depth: 4, stop: Stop::Calls(50) }).unwrap();
    assert_eq!(fs::read_dir(layout.root().join(&pages.created)).unwrap().count(), 50);
}

#[test]
fn wrong_data_ends_the_run() {
    let (_folder, layout, address) = served();
    let script = script(&layout, "read-4k".parse().unwrap(), &pages(&layout)).unwrap();
    let file = layout.root().join(FixtureTree::read_file());
    let mut content = fs::read(&file).unwrap();
    content[8192] ^= 1;
    fs::write(&file, content).unwrap();
    let mut client = Client::connect(address, 1).unwrap();
    let error = client.run(&script, Load { depth: 4, stop: Stop::Calls(50) }).unwrap_err();
    assert!(error.to_string().contains("wrong reply to call 2"), "{error:#}");
}

#[test]
fn a_missing_name_ends_the_run() {
    let (_folder, layout, address) = served();
    let script = script(&layout, "lookup".parse().unwrap(), &pages(&layout)).unwrap();
    fs::remove_file(layout.small().join(FixtureTree::file(7))).unwrap();
    let mut client = Client::connect(address, 1).unwrap();
    let error = client.run(&script, Load { depth: 4, stop: Stop::Calls(50) }).unwrap_err();
    assert!(error.to_string().contains("wrong reply to call 7"), "{error:#}");
}

/// Bytes of a call and of its answer, with the record mark: an xid, and a word that is always the
/// same.
const ECHOED: usize = 12;

/// Starts a server that returns every call, and once pauses for a while.
fn stalling(at_call: usize, rest: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut record = [0; ECHOED];
        for number in 0.. {
            if stream.read_exact(&mut record).is_err() {
                return;
            }
            if number == at_call {
                thread::sleep(rest);
            }
            stream.write_all(&record).unwrap();
        }
    });
    address
}

/// Calls that are due while the server pauses wait for it, as do those for which there is no room.
/// Of 500 calls in half a second, 200 are due in the two fifths of a pause. A closed loop would
/// have only four that wait.
#[test]
fn waits_caused_by_a_pause_of_the_server_are_in_the_latencies_of_an_open_loop() {
    let bytes = [&[0x80, 0, 0, 8][..], &[0; 8]].concat();
    let expect = Expectation::like(&[0; 8], 8);
    let template = Template { bytes, expect, units: 1, ..Template::default() };
    let script = CallTemplates { templates: vec![template], ..CallTemplates::default() };
    let mut client = Client::connect(stalling(100, Duration::from_millis(200)), 1).unwrap();
    let time = Duration::from_millis(500);
    let load = OpenLoad { rate: 1000.0, time, depth: 4, seed: 1 };
    let outcome = client.run_open(&script, load).unwrap();
    assert!((400..600).contains(&outcome.calls), "{} calls", outcome.calls);
    let late = outcome.latency.value_at_quantile(0.75) as f64 / 1e6;
    assert!(late > 20.0, "a quarter of the calls waited for {late} ms at most");
}
