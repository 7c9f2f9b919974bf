//! Clients of NFSv3 go on through the server that an export has left.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use comity_proto::nfs3;
use comity_proto::nfs4::{NfsLockType4, Nfsstat4, share};
use comity_proto::nlm::{Nlm4Lock, Nlm4Lockargs, Nlm4Notify, Nlm4Unlockargs, procedure};
use comity_xdr::{Encode, Opaque, encoded};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::four::Four;
use crate::common::raw::{NFS, NLM, Raw, opaque};
use crate::common::wait_until;
use crate::holder::rival;
use crate::pair::Pair;

/// Statuses of NLM.
const GRANTED: u32 = 0;
const DENIED: u32 = 1;
const GRACE: u32 = 4;
const STALE_FH: u32 = 7;

/// A part of the message that hosts are notified of a restart.
const NOTIFIED: &str = "NFSv3 hosts with locks are notified of the restart";

/// Statuses of NFS.
const STALE: u32 = 70;
const JUKEBOX: u32 = 10_008;

/// A client of NFSv3 at the server `a`, with a file.
struct Host {
    raw: Raw,
    file: Vec<u8>,
}

impl Host {
    fn new(pair: &Pair) -> Self {
        fs::write(pair.file("f"), "text").unwrap();
        let mut raw = Raw::connect(pair.servers[0].port, 0);
        let root = raw.mount(&pair.place.data()).unwrap();
        let file = raw.lookup(&root, b"f").unwrap();
        Self { raw, file }
    }

    /// Locks or unlocks the first byte of the file for an owner; returns the status.
    fn lock(&mut self, owner: &str, reclaim: bool) -> u32 {
        let (alock, cookie) = (named(&self.file, owner), Opaque(&b""[..]));
        let (block, exclusive) = (false, true);
        let lock = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 1 };
        ask(&mut self.raw, procedure::LOCK, &lock)
    }

    fn unlock(&mut self, owner: &str) -> u32 {
        let unlock = Nlm4Unlockargs { cookie: Opaque(b""), alock: named(&self.file, owner) };
        ask(&mut self.raw, procedure::UNLOCK, &unlock)
    }
}

fn named<'a>(file: &'a [u8], owner: &'a str) -> Nlm4Lock<'a> {
    let (caller_name, oh) = (Opaque(&b"host"[..]), Opaque(owner.as_bytes()));
    Nlm4Lock { caller_name, fh: Opaque(file), oh, svid: 1, l_offset: 0, l_len: 1 }
}

/// Calls the lock manager; returns the status that follows the cookie.
fn ask(raw: &mut Raw, procedure: u32, arguments: &impl Encode) -> u32 {
    let results = raw.call(NLM, procedure, &encoded(arguments));
    u32::from_be_bytes(results[4..8].try_into().unwrap())
}

/// A connection from a port that only a system has.
fn system(port: u16) -> Option<TcpStream> {
    (600..1024).find_map(|own| {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], own))).ok()?;
        connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).ok()?;
        Some(TcpStream::from(socket))
    })
}

/// REMOVE of a name in a directory.
fn remove(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut arguments = Vec::new();
    opaque(&mut arguments, dir);
    opaque(&mut arguments, name);
    arguments
}

#[test]
fn a_client_of_nfsv3_goes_on_with_its_locks_and_comes_back() {
    let pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(host.lock("one", false), GRANTED);
    let said = pair.migrate(0, &["--proxy-for", "600"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    assert_eq!(rival(pair.servers[1].port, (&pair.file("f"), 0)), Nfsstat4::Denied);
    assert_eq!(host.raw.read(&host.file).as_deref(), Ok(&b"text"[..]));
    assert_eq!(host.lock("two", false), DENIED);
    assert_eq!(host.unlock("one"), GRANTED);
    assert_eq!(host.lock("two", false), GRANTED);
    let root = host.raw.mount(&pair.place.data()).unwrap();
    host.raw.create(&root, "new", [1; 8]).unwrap();
    assert!(pair.file("new").exists());
    let status = pair.ask(0, &["status"]).out;
    assert!(status.contains("and calls of NFSv3 are forwarded to it for"), "{status}");

    for from in [1, 0, 1] {
        let said = pair.migrate(from, &["--proxy-for", "600"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(rival(pair.servers[1 - from].port, (&pair.file("f"), 0)), Nfsstat4::Denied);
        assert_eq!(host.lock("one", false), DENIED);
    }
    assert_eq!(host.unlock("two"), GRANTED);
    assert_eq!(host.lock("one", false), GRANTED);
}

#[test]
fn a_lock_of_a_client_that_follows_excludes_one_that_is_forwarded() {
    let pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(pair.migrate(0, &["--proxy-for", "600"]).code, Some(0));
    let mut client = Four::connect(pair.servers[1].port, 0, "client");
    let wanted = share::READ | share::WRITE | share::WANT_NO_DELEG;
    let file = client.open(&pair.file("f"), wanted).unwrap();
    let lock = client.lock(&file, NfsLockType4::Write, (0, 1)).unwrap();
    assert_eq!(host.lock("one", false), DENIED);
    client.unlock(&file, lock, (0, 1)).unwrap();
    assert_eq!(host.lock("one", false), GRANTED);
    assert_eq!(rival(pair.servers[1].port, (&pair.file("f"), 0)), Nfsstat4::Denied);
}

#[test]
fn the_locks_of_a_forwarded_host_end_when_it_restarts() {
    let pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(host.lock("one", false), GRANTED);
    assert_eq!(pair.migrate(0, &["--proxy-for", "600"]).code, Some(0));
    let Some(line) = system(pair.servers[0].port) else {
        assert!(!crate::common::is_root(), "no port below 1024 is free");
        return;
    };
    let notice = encoded(&Nlm4Notify { name: Opaque(b"host"), state: 3 });
    assert!(Raw::on(line, 0).call(NLM, procedure::FREE_ALL, &notice).is_empty());
    assert_eq!(rival(pair.servers[1].port, (&pair.file("f"), 0)), Nfsstat4::Ok);
}

/// The source, which is restarted, has forgotten its reply to the first call.
#[test]
fn a_forwarded_call_that_is_sent_again_is_not_executed_again() {
    let mut pair = Pair::new();
    let mut host = Host::new(&pair);
    let root = host.raw.mount(&pair.place.data()).unwrap();
    assert_eq!(pair.migrate(0, &["--proxy-for", "600"]).code, Some(0));
    let arguments = remove(&root, b"f");
    let mut calls = Raw::connect(pair.servers[0].port, 0);
    let first = calls.call(NFS, nfs3::procedure::REMOVE, &arguments);
    assert_eq!(first[..4], [0; 4]);
    pair.restart(0);
    let mut again = Raw::connect(pair.servers[0].port, 0);
    assert_eq!(again.call(NFS, nfs3::procedure::REMOVE, &arguments), first);
}

#[test]
fn calls_are_forwarded_over_restarts_of_both_servers_and_until_the_time_is_over() {
    let mut pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(pair.migrate(0, &["--proxy-for", "5"]).code, Some(0));
    pair.restart(0);
    pair.restart(1);
    host.raw = Raw::connect(pair.servers[0].port, 0);
    host.raw.getattr(&host.file).unwrap();
    assert_eq!(host.unlock("one"), GRANTED);
    let Host { mut raw, file } = host;
    wait_until("calls are not forwarded any more", || raw.getattr(&file) == Err(STALE));
    let mut host = Host { raw, file };
    assert_eq!((host.lock("one", false), host.unlock("one")), (STALE_FH, STALE_FH));
}

/// The host is notified by its own server, and reclaims what it has locked there.
#[test]
fn a_host_keeps_its_locks_when_the_server_that_forwards_restarts() {
    let mut pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(host.lock("one", false), GRANTED);
    assert_eq!(pair.migrate(0, &["--proxy-for", "600"]).code, Some(0));
    pair.restart(0);
    host.raw = Raw::connect(pair.servers[0].port, 0);
    assert_eq!(host.lock("two", true), DENIED);
    assert_eq!(host.lock("one", true), GRANTED);
    assert_eq!(rival(pair.servers[1].port, (&pair.file("f"), 0)), Nfsstat4::Denied);
    wait_until("the host is notified", || pair.log(0).contains(NOTIFIED));
}

/// The host knows the server that has restarted by the addresses of the other one.
#[test]
fn a_host_is_notified_when_the_server_that_has_its_locks_restarts() {
    let mut pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(pair.migrate(0, &["--proxy-for", "600"]).code, Some(0));
    assert_eq!(host.lock("one", false), GRANTED);
    pair.restart(1);
    wait_until("the host is notified", || pair.log(0).contains(NOTIFIED));
    assert_eq!(host.lock("two", false), GRACE);
    assert_eq!(host.lock("one", true), GRANTED);
    assert_eq!(rival(pair.servers[1].port, (&pair.file("f"), 0)), Nfsstat4::Grace);
}

#[test]
fn calls_of_nfsv3_are_not_forwarded_unless_that_is_asked_for() {
    let pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    assert_eq!(host.raw.getattr(&host.file), Err(STALE));
    let status: Value = serde_json::from_str(&pair.ask(0, &["status", "--json"]).out).unwrap();
    let place = format!("{} is at b", pair.place.data().display());
    assert_eq!(status["moved"], serde_json::json!([place]));
}

/// Each call of the client would otherwise hold a thread of the server for ten seconds.
#[test]
fn a_server_that_hangs_delays_one_call_and_not_the_next() {
    let pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(pair.migrate(0, &["--proxy-for", "600"]).code, Some(0));
    host.raw.getattr(&host.file).unwrap();
    pair.servers[1].signal(Signal::STOP);
    assert_eq!(host.raw.getattr(&host.file), Err(JUKEBOX));
    let begun = Instant::now();
    assert_eq!(host.raw.getattr(&host.file), Err(JUKEBOX));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    pair.servers[1].signal(Signal::CONT);
    wait_until("calls are forwarded again", || host.raw.getattr(&host.file).is_ok());
}

/// A client gets an answer, even if it is one that has it wait.
#[test]
fn a_client_is_told_to_wait_while_the_other_server_is_away() {
    let mut pair = Pair::new();
    let mut host = Host::new(&pair);
    assert_eq!(pair.migrate(0, &["--proxy-for", "600"]).code, Some(0));
    let port = pair.servers[1].port;
    pair.servers[1].signal(Signal::KILL);
    wait_until("b has ended", || TcpListener::bind(("127.0.0.1", port)).is_ok());
    assert_eq!(host.raw.getattr(&host.file), Err(JUKEBOX));
    pair.restart(1);
    wait_until("calls are forwarded again", || host.raw.getattr(&host.file).is_ok());
}
