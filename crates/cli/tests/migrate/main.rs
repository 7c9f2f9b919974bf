//! `comity migrate`: an export moves between two servers with the state of its clients.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod advice;
mod cancel;
#[path = "../common/mod.rs"]
mod common;
mod crashes;
mod forwarded;
mod grace;
mod holder;
mod pair;
mod proxy;
mod strangers;
mod warnings;

use std::path::Path;
use std::time::{Duration, Instant};

use comity_proto::nfs4::{NfsLockType4, Nfsstat4, Stateid4, share};
use common::PATIENCE;
use common::four::{Four, Opened};
use common::whereabouts::{fileid, location};
use pair::{NAMES, Pair};

/// Another client's try to lock the bytes that the first one has locked.
fn conflict(client: &mut Four, path: &Path) -> Nfsstat4 {
    let file = client.open(path, share::READ | share::WRITE | share::WANT_NO_DELEG).unwrap();
    client.lock(&file, NfsLockType4::Write, (0, 10)).unwrap_err()
}

/// Has another client open a file that is delegated, and returns the delegation.
fn recalled(
    client: &mut Four,
    (file, delegation): (&Opened, Stateid4),
    other: &mut Four,
    path: &Path,
) {
    let refused = other.open(path, share::READ | share::WRITE).unwrap_err();
    assert_eq!(refused, Nfsstat4::Delay);
    assert!(client.listen(PATIENCE, |client| !client.recalled.is_empty()));
    assert_eq!(client.recalled[0].other, delegation.other);
    client.give_back(file, delegation).unwrap();
}

fn used(client: &mut Four, (file, lock): (&Opened, Stateid4)) -> Stateid4 {
    client.change(file, file.stateid).unwrap();
    client.unlock(file, lock, (5, 1)).unwrap()
}

#[test]
fn opens_locks_and_delegations_are_good_at_the_other_server_and_back_again() {
    let pair = Pair::new();
    let mut client = pair.client(0);
    let file = client.open(&pair.file("f"), share::READ | share::WRITE).unwrap();
    let mut lock = client.lock(&file, NfsLockType4::Write, (0, 10)).unwrap();
    let (clientid, mut delegation) = (client.clientid, file.delegation);
    assert!(delegation.is_some());
    for from in [0, 1] {
        let said = pair.migrate(from, &[]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.starts_with(&format!(
            "moved to {} with {} client",
            NAMES[1 - from],
            from + 1
        )));
        assert_eq!(fileid(&mut client, &file.handle), Err(Nfsstat4::Moved));
        assert_eq!(location(&mut client, &file.handle).as_deref(), Some("127.0.0.1"));
        client = Four::follow(pair.servers[1 - from].port, 0, "client");
        assert_eq!(client.clientid, clientid, "the target knows the client");
        lock = used(&mut client, (&file, lock));
        let name = format!("other {from}");
        let mut other = Four::connect(pair.servers[1 - from].port, 0, &name);
        if let Some(delegation) = delegation.take() {
            recalled(&mut client, (&file, delegation), &mut other, &pair.file("f"));
        }
        assert_eq!(conflict(&mut other, &pair.file("f")), Nfsstat4::Denied);
    }
    client.unlock(&file, lock, (0, 10)).unwrap();
}

#[test]
fn a_dry_run_moves_nothing() {
    let pair = Pair::new();
    let said = pair.migrate(0, &["--dry-run"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    assert!(said.out.starts_with("b can take these exports"), "{}", said.out);
    let mut client = pair.client(0);
    client.open(&pair.file("f"), share::WRITE).unwrap();
}

#[test]
fn reasons_against_a_move_are_told() {
    let pair = Pair::new();
    for (arguments, reason) in [
        (["migrate", "/nowhere", "--to", "b"], "no export has the path /nowhere"),
        (["migrate", pair.place.data().to_str().unwrap(), "--to", "c"], "has no [[peer]] c"),
    ] {
        let said = pair.ask(0, &arguments);
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains(reason), "{}", said.err);
    }
    let said = pair.migrate(1, &[]);
    assert!(said.err.contains("is not served here"), "{}", said.err);
}

#[test]
fn the_place_of_an_export_is_kept_over_restarts() {
    let mut pair = Pair::new();
    let mut client = pair.client(0);
    let file = client.open(&pair.file("f"), share::READ | share::WRITE).unwrap();
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    for server in [0, 1] {
        pair.restart(server);
    }
    let mut client = pair.client(0);
    assert_eq!(fileid(&mut client, &file.handle), Err(Nfsstat4::Moved));
    let mut client = pair.client(1);
    fileid(&mut client, &file.handle).unwrap();
    let said = pair.ask(1, &["status"]);
    assert!(said.out.contains("is here"), "{}", said.out);
}

/// Clients wait meanwhile, as long as the rest of the time that a move may take.
#[test]
fn a_target_that_hangs_while_it_is_sent_the_state_is_given_up_in_time() {
    let mut pair = Pair::new();
    let mut client = pair.client(0);
    let file = client.open(&pair.file("f"), share::READ | share::WRITE).unwrap();
    let proxy = pair.put_proxy_between();
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    let whole = proxy.passed();
    assert_eq!(pair.migrate(1, &[]).code, Some(0));
    // TAKE and its answer have some 700 bytes.
    proxy.stall_after(whole - 1000);
    let begun = Instant::now();
    let said = pair.migrate(0, &[]);
    assert!(said.err.contains("did not answer within"), "{}", said.err);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    fileid(&mut client, &file.handle).unwrap();
}

/// The connection between the servers ends after many numbers of bytes, and after each few of the
/// last ones, among which the call and the answer are that decide.
#[test]
fn one_server_serves_an_export_wherever_the_connection_between_them_ends() {
    let mut pair = Pair::new();
    let mut client = pair.client(0);
    let file = client.open(&pair.file("f"), share::READ | share::WRITE | share::WANT_NO_DELEG);
    let file = file.unwrap();
    let mut lock = client.lock(&file, NfsLockType4::Write, (0, 10)).unwrap();
    let proxy = pair.put_proxy_between();
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    let at_b = Four::follow(pair.servers[1].port, 0, "client");
    assert_eq!(pair.migrate(1, &[]).code, Some(0));
    // From now on the client has a session at each server, and its state keeps its length.
    let mut clients = [client, at_b];
    proxy.count();
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    let whole = proxy.passed();
    assert_eq!(pair.migrate(1, &[]).code, Some(0));
    let early = (500..whole - 600).step_by(500);
    let mut unanswered = 0;
    for bytes in early.chain((whole - 600..whole).step_by(25)) {
        proxy.cut_after(bytes);
        let said = pair.migrate(0, &[]);
        assert_eq!(said.code, Some(1), "it ends with an error: {}", said.out);
        let again = pair.migrate(0, &[]);
        assert_eq!(again.code, Some(1), "the target cannot be reached");
        unanswered += usize::from(again.err.contains("on its way to another server"));
        proxy.count();
        let now = pair.serving(&file);
        lock = used(&mut clients[now], (&file, lock));
        if now == 1 {
            assert_eq!(pair.migrate(1, &[]).code, Some(0));
        }
    }
    assert!(unanswered > 2, "the answer to TAKE was lost {unanswered} times");
    clients[0].unlock(&file, lock, (0, 10)).unwrap();
}
