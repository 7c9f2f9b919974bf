//! Ten thousand connections to a process that may open twenty thousand files. Their other ends are
//! in other processes.
#![allow(clippy::unwrap_used)]

mod toy;

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use comity_server::{Patience, Settings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use toy::{Client, eventually, record, settings, start};

const CONNECTIONS: usize = 10_000;
const DESCRIPTORS: u64 = 20_000;
const CLIENTS: usize = 4;
/// The variable with the address that a client process connects to.
const SERVER: &str = "COMITY_TEST_SERVER";

/// Highest memory of an idle connection in bytes.
const IDLE_BYTES_MAX: usize = 4096;

#[test]
fn ten_thousand_connections_are_served() {
    if let Ok(server) = std::env::var(SERVER) {
        return be_clients(server.parse().unwrap());
    }
    if !limit_descriptors() {
        return eprintln!("skipped: this process may not open {DESCRIPTORS} files");
    }
    let settings = Settings {
        connections_per_address_max: CONNECTIONS,
        patience: Patience::default(),
        event_loops: 2,
        ..settings()
    };
    let server = start(&Arc::default(), settings);
    Client::new(&server).call(1, toy::NULL, &[]);
    let before = resident_bytes();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| spawn(server.addresses()[0])).collect();
    let mut said: Vec<_> = clients.iter_mut().map(words).collect();
    for words in &mut said {
        assert!(words.any(|line| line.contains("all are answered")), "a client failed");
    }
    let each = resident_bytes().saturating_sub(before) / CONNECTIONS;
    println!("{CONNECTIONS} connections, {each} bytes each");
    assert_eq!(server.stats().connections as usize, CONNECTIONS);
    assert!(each <= IDLE_BYTES_MAX, "{each} bytes for an idle connection");
    assert!(Client::new(&server).is_ended_within(std::time::Duration::from_secs(1)));
    assert_eq!(server.stats().refused, 1, "there is no place for one more");
    for client in &mut clients {
        drop(client.stdin.take());
        assert!(client.wait().unwrap().success());
    }
    eventually("all have gone", || server.stats().connections == 0);
    assert!(server.shutdown());
}

/// Limits this process to [`DESCRIPTORS`] open files, even if it is root's. Returns false if the
/// limit cannot be raised to that.
fn limit_descriptors() -> bool {
    if let Ok(mut sets) = capabilities(None) {
        sets.effective.remove(CapabilitySet::SYS_RESOURCE);
        set_capabilities(None, sets).unwrap();
    }
    let limit = Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
    let possible = getrlimit(Resource::Nofile).maximum.is_none_or(|most| most >= DESCRIPTORS);
    possible && setrlimit(Resource::Nofile, limit).is_ok()
}

fn spawn(server: SocketAddr) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ten_thousand_connections_are_served", "--nocapture"])
        .env(SERVER, server.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn words(client: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(client.stdout.take().unwrap()).lines().map_while(Result::ok)
}

/// Keeps a part of the connections open until standard input ends.
fn be_clients(server: SocketAddr) {
    let connect = |_| Client(TcpStream::connect(server).unwrap());
    let mut clients: Vec<_> = (0..CONNECTIONS / CLIENTS).map(connect).collect();
    for client in &mut clients {
        client.send(&record(3, toy::NULL, &[]));
    }
    for client in &mut clients {
        assert_eq!(client.reply().xid, 3);
    }
    println!("all are answered");
    let _ = std::io::stdin().read(&mut [0]);
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
