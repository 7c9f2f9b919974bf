//! `comity cluster move`: an export goes to a chosen head with the state of its clients.

use std::time::Duration;

use comity_proto::nfs4::{ExistLockOwner4, Locker4, NfsLockType4, Nfsstat4, Stateid4, share};

use crate::common::four::{Four, Opened};
use crate::common::whereabouts::{fileid, location};
use crate::common::{PATIENCE, wait_until};
use crate::heads::{Heads, NAMES};
use crate::{ACCESS, BYTES, hold, reclaim};

/// Writes, and locks another byte as the owner of a lock that was granted before the move.
fn use_lock(client: &mut Four, file: &Opened, lock_stateid: Stateid4, byte: u64) -> Stateid4 {
    client.change(file, file.stateid).unwrap();
    let locker = Locker4::Exist(ExistLockOwner4 { lock_stateid, lock_seqid: 0 });
    client.lock_as(file, (locker, false), NfsLockType4::Write, (byte, 1)).unwrap()
}

/// Has another client open a delegated file, so that the delegation is recalled and given back.
fn recall(client: &mut Four, (file, delegation): (&Opened, Stateid4), heads: &Heads, head: usize) {
    let mut other = heads.client(head, "other");
    let refused = other.open(&heads.file("one", "delegated"), ACCESS).unwrap_err();
    assert_eq!(refused, Nfsstat4::Delay);
    assert!(client.listen(PATIENCE, |client| !client.recalled.is_empty()));
    assert_eq!(client.recalled[0].other, delegation.other);
    client.give_back(file, delegation).unwrap();
}

#[test]
fn an_export_moves_to_a_chosen_head_and_back_with_opens_locks_delegations_and_waiters() {
    let Some(heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut client = heads.client(0, "client");
    let file = client.open(&heads.file("one", "f"), ACCESS).unwrap();
    let mut lock = client.lock(&file, NfsLockType4::Write, BYTES).unwrap();
    let delegated = client.open(&heads.file("one", "delegated"), share::READ | share::WRITE);
    let delegated = delegated.unwrap();
    let (clientid, delegation) = (client.clientid, delegated.delegation.unwrap());
    let mut waiter = heads.client(0, "waiter");
    let wanted = waiter.open(&heads.file("one", "f"), ACCESS).unwrap();
    let refused = waiter.lock(&wanted, NfsLockType4::WriteWait, BYTES).unwrap_err();
    assert_eq!(refused, Nfsstat4::Denied);
    // The other export of the same file system stays where it is, with its state.
    let mut staying = heads.client(1, "staying");
    let others = hold(&mut staying, &heads.file("two", "g"));

    for (from, to) in [(0, 1), (1, 0)] {
        let said = heads.move_export((from, to), &[]);
        assert_eq!(said.code, Some(0), "{} {}", said.err, heads.log(to));
        assert!(
            said.out.starts_with(&format!("moved to {} with 2 clients", NAMES[to])),
            "{}",
            said.out
        );
        assert_eq!(fileid(&mut client, &file.handle), Err(Nfsstat4::Moved));
        assert_eq!(location(&mut client, &file.handle).as_deref(), Some(NAMES[to]));
        client = Four::follow(heads.port(to), 0, "client");
        assert_eq!(client.clientid, clientid, "the target knows the client");
        lock = use_lock(&mut client, &file, lock, 100 + from as u64 * 10);
        staying.change(&others, others.stateid).unwrap();
        assert!(heads.status(to)["exports"][0]["grace_left_seconds"].is_null());
        // The head that looks each second does not change anything after the move.
        wait_until("the first head knows the move", || {
            heads.status(from)["exports"][0]["head"] == NAMES[to]
        });
    }
    recall(&mut client, (&delegated, delegation), &heads, 0);
    client.unlock(&file, lock, BYTES).unwrap();
    // The lock is offered to the owner that waits, and to nobody else.
    let mut rival = heads.client(0, "rival");
    let refused = rival.open(&heads.file("one", "f"), ACCESS);
    let refused = rival.lock(&refused.unwrap(), NfsLockType4::Write, BYTES).unwrap_err();
    assert_eq!(refused, Nfsstat4::Denied);
    let mut waiter = Four::follow(heads.port(0), 0, "waiter");
    waiter.lock(&wanted, NfsLockType4::WriteWait, BYTES).unwrap();
}

/// A client whose state has moved reclaims it if the target fails later, from any head.
#[test]
fn clients_reclaim_what_has_moved_after_the_target_has_failed() {
    let Some(mut heads) = Heads::new(Duration::from_secs(90)) else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    assert_eq!(heads.move_export((0, 1), &[]).code, Some(0));
    heads.kill(1);
    wait_until("the first head serves the export again", || {
        fileid(&mut client, &file.handle).is_ok()
    });
    reclaim(&mut client, &file).unwrap();
}

/// Such a client may not reclaim at the head that it came from: others may have locked the same
/// bytes at the other head meanwhile.
#[test]
fn a_client_that_lost_its_state_elsewhere_does_not_reclaim_it_after_the_way_back() {
    let Some(mut heads) = Heads::new(Duration::from_secs(6)) else { return };
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    assert_eq!(heads.move_export((0, 1), &[]).code, Some(0));
    // The client uses only the other export of the first head, so that its lease of this export
    // ends.
    let mut rival = heads.client(1, "rival");
    let wanted = rival.open(&heads.file("one", "f"), ACCESS).unwrap();
    wait_until("the lock of the silent client has ended", || {
        let _ = fileid(&mut client, &file.handle);
        rival.lock(&wanted, NfsLockType4::Write, BYTES).is_ok()
    });
    assert_eq!(heads.move_export((1, 0), &[]).code, Some(0));
    heads.kill(0);
    let mut client = Four::follow(heads.port(1), 0, "client");
    wait_until("the other head serves the export", || fileid(&mut client, &file.handle).is_ok());
    assert_eq!(reclaim(&mut client, &file).unwrap_err(), Nfsstat4::ReclaimBad);
}

#[test]
fn reasons_against_a_move_are_told() {
    let Some(heads) = Heads::new(Duration::from_secs(90)) else { return };
    let refused = |(from, to): (usize, &str), export: &str| {
        let export = heads.place.data().join(export);
        let said = heads.ask(from, &["cluster", "move", export.to_str().unwrap(), "--to", to]);
        assert_eq!(said.code, Some(1));
        said.err
    };
    for (from_to, export, reason) in [
        ((0, "b"), "three", "no export has the path"),
        ((0, "c"), "one", "no head c is up; those that are: a, b"),
        ((0, "a"), "one", "this is the head a, and it serves the export already"),
        ((0, "b"), "two", "is served by the head b: run this command on its host"),
    ] {
        let said = refused(from_to, export);
        assert!(said.contains(reason), "{said}");
    }
    let said = heads.move_export((0, 1), &["--dry-run"]);
    assert_eq!(said.out, "b can take the export; without --dry-run it is moved\n");
    let said = heads.move_export((0, 1), &["--dry-run", "--json"]);
    assert!(said.out.contains("\"state\":\"possible\""), "{}", said.out);
    assert_eq!(heads.status(0)["exports"][0]["head"], "a");
}

/// `cargo xtask kernel run heads` has clients that come by the address.
#[test]
fn exports_with_one_address_move_together_and_the_address_with_them() {
    let lease = Duration::from_secs(90);
    let Some(heads) = Heads::with_options(lease, ", \"address=192.0.2.7\"") else { return };
    let are_at = |head: usize, name: &str| {
        let status = heads.status(head);
        let exports = status["exports"].as_array().unwrap();
        exports.iter().all(|export| export["head"] == name)
            && status["addresses"][0]["head"] == name
    };
    wait_until("the first head has both exports", || are_at(0, "a") && are_at(1, "a"));
    let mut client = heads.client(0, "client");
    let file = hold(&mut client, &heads.file("one", "f"));
    let others = hold(&mut client, &heads.file("two", "g"));
    let said = heads.move_export((0, 1), &[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.starts_with("these have one address, and move together: "), "{}", said.out);
    assert!(are_at(0, "b") && are_at(1, "b"), "both heads show it at once");
    assert_eq!(location(&mut client, &file.handle).as_deref(), Some("192.0.2.7"));
    let mut client = Four::follow(heads.port(1), 0, "client");
    client.change(&file, file.stateid).unwrap();
    client.change(&others, others.stateid).unwrap();
}
