//! A head answers nothing once its lease may be over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::four::Four;
use crate::common::wait_until;
use crate::common::whereabouts::fileid;
use crate::heads::{Heads, LEASE_SECONDS};
use crate::{hold, reclaim};

#[test]
fn a_head_that_is_cut_from_etcd_ends_before_its_lease_does() {
    let Some(mut heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    let frozen = Instant::now();
    heads.etcd.freeze();
    fileid(&mut client, &file.handle).unwrap();
    heads.wait_for_end(0);
    let lasted = frozen.elapsed();
    assert!(lasted < Duration::from_secs(LEASE_SECONDS), "it answered for {lasted:?}");
    assert!(heads.log(0).contains("the server ends"), "{}", heads.log(0));
    heads.wait_for_end(1);

    heads.etcd.thaw();
    heads.kill(0);
    heads.start(0);
    let mut client = Four::follow(heads.port(0), 0, "client");
    wait_until("the head serves again", || fileid(&mut client, &file.handle).is_ok());
    reclaim(&mut client, &file).unwrap();
}

/// A process, or its machine, may be suspended for longer than its lease. It must not answer a call
/// when it goes on, not even the first one.
#[test]
fn a_head_that_was_suspended_for_longer_than_its_lease_answers_nothing_more() {
    let Some(heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    heads.signal(0, Signal::STOP);
    let mut other = heads.client(1, "other");
    wait_until("another head serves the export", || fileid(&mut other, &file.handle).is_ok());
    // The call is there before the process goes on.
    let port = heads.port(0);
    let before = unread_bytes(port);
    let asked =
        thread::spawn(move || catch_unwind(AssertUnwindSafe(|| fileid(&mut client, &file.handle))));
    wait_until("the call has arrived", || unread_bytes(port) > before);
    heads.signal(0, Signal::CONT);
    assert!(asked.join().unwrap().is_err(), "the suspended head has answered");
    heads.wait_for_end(0);
}

/// Returns how many bytes that have arrived at a port of this machine are not read by its process.
fn unread_bytes(port: u16) -> u64 {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_connected = fields[3] == "01" && fields[1].ends_with(&format!(":{port:04X}"));
        let received = fields[4].split_once(':').unwrap().1;
        is_connected.then(|| u64::from_str_radix(received, 16).unwrap())
    };
    lines.filter_map(of_line).sum()
}
