//! Heads of a cluster: an export of a head that fails is served by another one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

#[path = "../common/mod.rs"]
mod common;
mod crashes;
mod drain;
#[path = "../../../store/tests/common/etcd.rs"]
mod etcd;
mod heads;
#[path = "../migrate/holder.rs"]
mod holder;
mod lease;
mod moves;
mod refusals;
mod tls;

use std::time::{Duration, Instant};

use comity_proto::nfs4::{NfsLockType4, Nfsstat4, operation as op, share};
use common::four::{Four, Opened, operation};
use common::wait_until;
use common::whereabouts::{fileid, location};
use heads::{Heads, LEASE_SECONDS};

const ACCESS: u32 = share::READ | share::WRITE | share::WANT_NO_DELEG;

/// The bytes that clients lock.
const BYTES: (u64, u64) = (0, 10);

/// Reclaims an open and its lock.
fn reclaim(client: &mut Four, file: &Opened) -> Result<Opened, Nfsstat4> {
    let file = client.reclaim(file, ACCESS)?;
    let locker = (client.locker(&file), true);
    client.lock_as(&file, locker, NfsLockType4::Write, BYTES)?;
    Ok(file)
}

fn complete(client: &mut Four) {
    client.perform(vec![operation(op::RECLAIM_COMPLETE, &false)]).unwrap();
}

/// Opens a file and locks it.
fn hold(client: &mut Four, path: &std::path::Path) -> Opened {
    let file = client.open(path, ACCESS).unwrap();
    client.lock(&file, NfsLockType4::Write, BYTES).unwrap();
    file
}

#[test]
fn a_killed_head_is_followed_and_its_clients_reclaim_while_other_exports_go_on() {
    let Some(mut heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    let mut other = heads.client(1, "other");
    let others = hold(&mut other, &heads.file("two", "g"));
    assert_eq!(fileid(&mut other, &file.handle), Err(Nfsstat4::Moved));
    assert_eq!(location(&mut other, &file.handle).as_deref(), Some("a"));

    let killed = Instant::now();
    heads.kill(0);
    wait_until("another head serves the export", || {
        // The export of the other head is used all the time, and never in grace.
        other.change(&others, others.stateid).unwrap();
        hold(&mut other, &heads.file("two", "new"));
        fileid(&mut other, &file.handle).is_ok()
    });
    assert!(killed.elapsed() < Duration::from_secs(LEASE_SECONDS * 3), "{:?}", killed.elapsed());

    let refused = other.open(&heads.file("one", "f"), ACCESS).unwrap_err();
    assert_eq!(refused, Nfsstat4::Grace);
    let mut client = Four::follow(heads.port(1), 0, "client");
    let file = reclaim(&mut client, &file).unwrap();
    complete(&mut client);
    wait_until("the grace period ends early", || {
        other.open(&heads.file("one", "f"), ACCESS).is_ok()
    });
    assert!(killed.elapsed() < Duration::from_secs(60), "{:?}", killed.elapsed());
    let wanted = other.open(&heads.file("one", "f"), ACCESS).unwrap();
    let refused = other.lock(&wanted, NfsLockType4::Write, BYTES).unwrap_err();
    assert_eq!(refused, Nfsstat4::Denied);
    client.change(&file, file.stateid).unwrap();

    heads.start(0);
    let status = heads.status(0);
    assert_eq!(status["exports"][0]["head"], "b", "{status}");
    let mut third = heads.client(0, "third");
    assert_eq!(location(&mut third, &file.handle).as_deref(), Some("b"));
    wait_until("the other head has seen it", || {
        let shown = heads.ask(1, &["cluster", "status"]).out;
        shown.contains("heads: a, b\n") && shown.contains("one: b\n")
    });
}

/// A client that has not reclaimed in time may not reclaim later, at no head: others may have
/// locked the same bytes meanwhile.
#[test]
fn a_client_that_does_not_reclaim_in_time_never_reclaims_that_export() {
    let Some(mut heads) = Heads::new(Duration::from_secs(6)) else { return };
    let mut at_a = heads.client(0, "late");
    let file = hold(&mut at_a, &heads.file("one", "f"));
    let mut at_b = heads.client(1, "late");
    let others = hold(&mut at_b, &heads.file("two", "g"));
    heads.kill(0);
    let mut rival = heads.client(1, "rival");
    wait_until("the grace period ends", || rival.open(&heads.file("one", "f"), ACCESS).is_ok());
    let taken = hold(&mut rival, &heads.file("one", "f"));

    heads.start(0);
    wait_until("both heads are up", || heads.status(0)["heads"].as_array().unwrap().len() == 2);
    heads.kill(1);
    let mut late = Four::follow(heads.port(0), 0, "late");
    wait_until("the first head serves both exports", || {
        [&file, &others].iter().all(|file| fileid(&mut late, &file.handle).is_ok())
    });
    assert_eq!(reclaim(&mut late, &file).unwrap_err(), Nfsstat4::ReclaimBad);
    reclaim(&mut late, &others).unwrap();
    let mut rival = Four::follow(heads.port(0), 0, "rival");
    reclaim(&mut rival, &taken).unwrap();
}

/// A client that uses the export of the other head, too, has completed its reclaims there long ago.
#[test]
fn a_known_client_completes_the_reclaims_of_one_export() {
    let Some(mut heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut at_a = heads.client(0, "client");
    let file = hold(&mut at_a, &heads.file("one", "f"));
    let mut at_b = heads.client(1, "client");
    heads.kill(0);
    wait_until("another head serves the export", || fileid(&mut at_b, &file.handle).is_ok());
    let file = reclaim(&mut at_b, &file).unwrap();
    assert_eq!(at_b.open(&heads.file("one", "new"), ACCESS).unwrap_err(), Nfsstat4::Grace);
    let one_fs = operation(op::RECLAIM_COMPLETE, &true);
    at_b.perform(common::placed::on(&file.handle, one_fs)).unwrap();
    wait_until("the grace period ends early", || {
        at_b.open(&heads.file("one", "new"), ACCESS).is_ok()
    });
}

/// A head that is stopped in order is followed at once: it gives its lease back.
#[test]
fn a_stopped_head_is_followed_at_once() {
    let Some(mut heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    drop(client);
    heads.stop(0);
    let mut client = Four::follow(heads.port(1), 0, "client");
    let stopped = Instant::now();
    wait_until("another head serves the export", || fileid(&mut client, &file.handle).is_ok());
    assert!(stopped.elapsed() < Duration::from_secs(LEASE_SECONDS));
    reclaim(&mut client, &file).unwrap();
}

/// All exports with one address are where the address is, and clients are referred to it.
#[test]
fn an_address_and_its_exports_go_together_to_the_next_head() {
    let lease = Duration::from_secs(90);
    let Some(mut heads) = Heads::with_options(lease, ", \"address=192.0.2.7\"") else { return };
    let are_at = |heads: &Heads, asked: usize, head: &str| {
        let status = heads.status(asked);
        let exports = status["exports"].as_array().unwrap();
        exports.iter().all(|export| export["head"] == head)
            && status["addresses"][0]["address"] == "192.0.2.7"
            && status["addresses"][0]["head"] == head
            && status["addresses"][0]["is_here"] == (asked == usize::from(head == "b"))
    };
    wait_until("the first head has the address and both exports", || {
        are_at(&heads, 0, "a") && are_at(&heads, 1, "a")
    });
    let mut at_a = heads.client(0, "client");
    let file = hold(&mut at_a, &heads.file("two", "f"));
    let mut at_b = heads.client(1, "other");
    assert_eq!(location(&mut at_b, &file.handle).as_deref(), Some("192.0.2.7"));
    heads.kill(0);
    wait_until("the other head has the address and both exports", || are_at(&heads, 1, "b"));
    wait_until("the other head serves the export", || fileid(&mut at_b, &file.handle).is_ok());
}
