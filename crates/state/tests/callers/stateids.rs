//! A stateid can be used only by its user, from the address of its client and with its file: these
//! are checked before anything is changed.

use std::sync::Arc;

use comity_state::{
    At, ByteRange, Caller, Claim, Delegation, DelegationWish, Engine, Error, Lock, LockRefusal,
    LockType, Locker, Result, SeqidCheck, Share, Stateid,
};

use crate::people::{
    ELSEWHERE, NAME, NEIGHBOUR, NOW, PLAIN, Person, SECOND, STRANGER, USER, VICTIM, Wish, caller,
    client_40, engine, error, file, open, try_open,
};

/// The user's stateids of file 1, and the last seqid of its owners in minor version 0.
struct Stateids {
    open: Stateid,
    lock: Stateid,
    delegation: Stateid,
}

const OPEN_SEQID: u32 = 0;
const LOCK_SEQID: u32 = 1;
const RANGE: ByteRange = ByteRange { first: 0, last: 9 };

fn hold(engine: &Engine, person: &Person) -> Stateids {
    let wish = Wish { delegation: DelegationWish::Write, ..PLAIN };
    let opened = open(engine, person, wish);
    let Delegation::Granted { stateid: delegation, .. } = opened.delegation else { panic!() };
    let open = opened.stateid;
    let shown = (person.sender(NOW, USER), &file(1));
    let lock = lock(engine, shown, new_locker(open)).unwrap();
    Stateids { open, lock, delegation }
}

fn new_locker(open: Stateid) -> Locker<'static> {
    Locker::New { open, owner: b"l", seqid: LOCK_SEQID }
}

fn lock(engine: &Engine, (sender, file): At<'_>, locker: Locker<'_>) -> Result<Stateid> {
    let kind = LockType::Write;
    let args = Lock { file: *file, range: RANGE, kind, reclaim: false, wait: false, locker };
    engine.lock(sender, &args).map_err(|refused| match refused {
        LockRefusal::Error(error) => error,
        denied => panic!("{denied:?}"),
    })
}

/// Tries every operation that changes state by a stateid; returns the error of each.
fn attempts(
    engine: &Engine,
    at: At<'_>,
    stateids: &Stateids,
) -> Vec<(&'static str, Option<Error>)> {
    let (sender, file) = at;
    let Stateids { open, lock: locked, delegation } = stateids;
    let read = Share::access(Share::READ);
    vec![
        ("OPEN_CONFIRM", error(engine.open_confirm(at, open))),
        ("OPEN_DOWNGRADE", error(engine.open_downgrade(at, open, read))),
        ("CLOSE", error(engine.close(at, open))),
        ("CLOSE of a lock", error(engine.close(at, locked))),
        ("LOCKU", error(engine.unlock(sender, locked, (file, RANGE)))),
        ("LOCK", error(lock(engine, at, Locker::Known { lock: *locked }))),
        ("LOCK by a new owner", error(lock(engine, at, new_locker(*open)))),
        ("DELEGRETURN", error(engine.delegreturn(at, delegation))),
    ]
}

fn all_are(attempts: &[(&str, Option<Error>)], expected: Error) {
    for (name, refusal) in attempts {
        assert_eq!(*refusal, Some(expected), "{name}");
    }
}

/// Asserts that every operation of this caller fails, changes no state and renews no lease.
fn in_vain(caller: Caller, number: u8, expected: [Error; 2]) {
    let both = Person::both(engine).into_iter();
    for ((engine, person), expected) in both.zip(expected) {
        let held = hold(&engine, &person);
        let census = engine.census();
        let at = (person.sender(NOW + SECOND, caller), &file(number));
        all_are(&attempts(&engine, at, &held), expected);
        assert_eq!((engine.census(), person.client.renewed()), (census, NOW));
        still_usable(&engine, &person, &held);
    }
}

/// Asserts that the user can still use its stateids.
fn still_usable(engine: &Engine, person: &Person, stateids: &Stateids) {
    let at = (person.sender(NOW, USER), &file(1));
    engine.delegreturn(at, &stateids.delegation).unwrap();
    engine.unlock(at.0, &stateids.lock, (&file(1), RANGE)).unwrap();
    engine.close(at, &stateids.open).unwrap();
}

#[test]
fn another_user_of_the_same_machine_changes_no_state() {
    in_vain(NEIGHBOUR, 1, [Error::WrongCred; 2]);
}

/// In minor version 0 the user may belong to a client that has moved, whose principal will prove
/// its new address. In a session the address of the client is known.
#[test]
fn another_user_elsewhere_changes_no_state() {
    in_vain(STRANGER, 1, [Error::Delay, Error::WrongCred]);
}

#[test]
fn the_user_itself_changes_no_state_with_the_handle_of_another_file() {
    in_vain(USER, 2, [Error::BadStateid; 2]);
}

#[test]
fn another_user_with_the_handle_of_another_file_gets_the_same_errors() {
    in_vain(NEIGHBOUR, 2, [Error::BadStateid; 2]);
}

/// A kernel may close files as its own principal after their user has ended.
#[test]
fn the_principal_of_the_client_may_use_the_state_of_its_users() {
    for (engine, person) in Person::both(engine) {
        let held = hold(&engine, &person);
        let at = (person.sender(NOW, VICTIM), &file(1));
        engine.delegreturn(at, &held.delegation).unwrap();
        engine.unlock(at.0, &held.lock, (&file(1), RANGE)).unwrap();
        engine.close(at, &held.open).unwrap();
    }
}

/// A delegation can be returned by its user and its client, but not by another user of the machine.
#[test]
fn another_user_cannot_return_a_delegation() {
    for (engine, person) in Person::both(engine) {
        let wish = Wish { delegation: DelegationWish::Write, ..PLAIN };
        let other = Wish { caller: NEIGHBOUR, owner: b"p", file: 2, ..wish };
        let given = [wish, other].map(|wish| match open(&engine, &person, wish).delegation {
            Delegation::Granted { stateid, .. } => stateid,
            refused => panic!("{refused:?}"),
        });
        let back = |caller, number: usize| {
            let at = (person.sender(NOW, caller), &file(number as u8 + 1));
            engine.delegreturn(at, &given[number])
        };
        assert_eq!(
            (back(USER, 1), back(NEIGHBOUR, 0)),
            (Err(Error::WrongCred), Err(Error::WrongCred))
        );
        assert_eq!((back(USER, 0), back(NEIGHBOUR, 1)), (Ok(()), Ok(())));
    }
}

#[test]
fn another_user_cannot_free_a_lock_stateid() {
    for ((engine, person), elsewhere) in
        Person::both(engine).into_iter().zip([Error::Delay, Error::WrongCred])
    {
        let held = hold(&engine, &person);
        let sender = |caller| person.sender(NOW, caller);
        let freed = engine.unlock(sender(USER), &held.lock, (&file(1), RANGE)).unwrap();
        assert_eq!(engine.free_stateid(sender(NEIGHBOUR), &freed), Err(Error::WrongCred));
        assert_eq!(engine.free_stateid(sender(STRANGER), &freed), Err(elsewhere));
        assert_eq!(engine.free_stateid(sender(USER), &freed), Ok(()));
    }
}

fn taken(turn: Result<SeqidCheck>) -> Result<&'static str> {
    turn.map(|turn| match turn {
        SeqidCheck::New(_) => "new",
        SeqidCheck::Again(_) => "again",
    })
}

/// The seqid of the owner's next operation does not change, and no other user gets the last answer.
#[test]
fn a_guessed_stateid_changes_no_seqid() {
    let [(engine, person), _] = Person::both(engine);
    let held = hold(&engine, &person);
    let turn = |caller, number, (stateid, seqid)| {
        engine.stateid_turn((person.sender(NOW + SECOND, caller), &file(number)), stateid, seqid)
    };
    for (stateid, last) in [(&held.open, OPEN_SEQID), (&held.lock, LOCK_SEQID)] {
        let SeqidCheck::New(own) = turn(USER, 1, (stateid, last + 1)).unwrap() else { panic!() };
        own.answered(b"told", None);
        for (caller, number, refusal) in [
            (NEIGHBOUR, 1, Error::WrongCred),
            (STRANGER, 1, Error::Delay),
            (USER, 2, Error::BadStateid),
        ] {
            for seqid in last..last + 4 {
                let refused = taken(turn(caller, number, (stateid, seqid)));
                assert_eq!(refused, Err(refusal), "{caller:?} {seqid}");
            }
        }
        assert_eq!(taken(turn(USER, 1, (stateid, last + 1))), Ok("again"));
        assert_eq!(taken(turn(USER, 1, (stateid, last + 2))), Ok("new"));
    }
    assert_eq!(person.client.renewed(), NOW);
}

/// Tests an open that waits for OPEN_CONFIRM, as the first open of each owner does in minor version
/// 0.
#[test]
fn another_user_cannot_confirm_an_open() {
    let engine = engine();
    let client = client_40(&engine, VICTIM, NAME);
    let person = Person { client: Arc::clone(&client), has_sessions: false };
    let SeqidCheck::New(turn) = engine.open_turn((NOW, USER), &client, b"o", 5).unwrap() else {
        panic!()
    };
    let opened = try_open(&engine, NOW, &client, PLAIN).unwrap();
    turn.answered(b"opened", None);
    assert!(opened.confirm);
    let confirmed = |caller, number| {
        let at = (person.sender(NOW + SECOND, caller), &file(number));
        engine.open_confirm(at, &opened.stateid).map(|stateid| stateid.seqid)
    };
    assert_eq!(confirmed(NEIGHBOUR, 1), Err(Error::WrongCred));
    assert_eq!(confirmed(STRANGER, 1), Err(Error::Delay));
    assert_eq!(confirmed(USER, 2), Err(Error::BadStateid));
    assert_eq!(client.renewed(), NOW);
    assert_eq!(confirmed(USER, 1), Ok(2));
}

/// An owner that was never confirmed may begin anew, and forgets its opens then.
#[test]
fn another_user_does_not_end_an_open_that_waits_for_its_confirmation() {
    let waits = || {
        let engine = engine();
        let client = client_40(&engine, VICTIM, NAME);
        let turn = engine.open_turn((NOW, USER), &client, b"o", 5);
        let SeqidCheck::New(turn) = turn.unwrap() else { panic!() };
        let stateid = try_open(&engine, NOW, &client, PLAIN).unwrap().stateid;
        turn.answered(b"opened", None);
        (engine, client, stateid)
    };
    let (engine, client, stateid) = waits();
    for seqid in [0, 1, 4, 7, 1000] {
        let turn = engine.open_turn((NOW, NEIGHBOUR), &client, b"o", seqid);
        assert_eq!(taken(turn), Err(Error::BadSeqid), "{seqid}");
    }
    let person = Person { client, has_sessions: false };
    let confirmed = engine.open_confirm((person.sender(NOW, USER), &file(1)), &stateid);
    assert_eq!(confirmed.map(|stateid| stateid.seqid), Ok(2));
    for caller in [USER, VICTIM] {
        let (engine, client, _) = waits();
        assert_eq!(taken(engine.open_turn((NOW, caller), &client, b"o", 9)), Ok("new"));
        assert_eq!(engine.census().opens, 0);
    }
    // An OPEN that fails keeps the name from nobody.
    let (engine, client, _) = waits();
    let failing = engine.open_turn((NOW, NEIGHBOUR), &client, b"other", 70).unwrap();
    let SeqidCheck::New(failing) = failing else { panic!() };
    failing.answered(b"failed", None);
    assert_eq!(taken(engine.open_turn((NOW, USER), &client, b"other", 1)), Ok("new"));
}

/// A client may have one open-owner for all its users (FreeBSD, `oneopenown`): files that several
/// users opened by it belong to the client, and any of them may close these.
#[test]
fn an_open_that_several_users_share_is_closed_by_any_of_them() {
    for (engine, person) in Person::both(engine) {
        for closer in [USER, NEIGHBOUR, caller(1002, 1)] {
            open(&engine, &person, PLAIN);
            let shared = open(&engine, &person, Wish { caller: NEIGHBOUR, ..PLAIN });
            let key = file(1);
            let at = |caller| (person.sender(NOW, caller), &key);
            if !person.has_sessions {
                let refused = engine.close(at(STRANGER), &shared.stateid);
                assert_eq!(error(refused), Some(Error::Delay));
            }
            engine.close(at(closer), &shared.stateid).unwrap();
        }
    }
}

/// An open belongs to the principal that made it, even if others use the owner's name for other
/// files.
#[test]
fn a_user_with_the_same_owner_name_cannot_change_an_open_of_one_user() {
    for closer in [USER, NEIGHBOUR] {
        for (engine, person) in Person::both(engine) {
            let held = hold(&engine, &person);
            let wish = Wish { caller: NEIGHBOUR, file: 2, ..PLAIN };
            let borrowed = open(&engine, &person, wish);
            let at = (person.sender(NOW + SECOND, NEIGHBOUR), &file(1));
            all_are(&attempts(&engine, at, &held), Error::WrongCred);
            still_usable(&engine, &person, &held);
            let at = (person.sender(NOW, closer), &file(2));
            engine.close(at, &borrowed.stateid).unwrap();
        }
    }
}

#[test]
fn another_user_cannot_release_a_lock_owner() {
    for (engine, person) in Person::both(engine) {
        let held = hold(&engine, &person);
        let sender = person.sender(NOW, USER);
        let freed = engine.unlock(sender, &held.lock, (&file(1), RANGE)).unwrap();
        let release = |caller| engine.release_lockowner((NOW, caller), &person.client, b"l");
        assert_eq!(release(NEIGHBOUR), Err(Error::WrongCred));
        assert_eq!(engine.test_stateid(sender, &freed), Ok(()));
        assert_eq!(release(USER), Ok(()));
    }
}

#[test]
fn only_a_principal_with_state_of_a_client_renews_its_lease() {
    let [(engine, person), _] = Person::both(engine);
    let later = NOW + SECOND;
    let renew = |caller| engine.renew(later, person.client.id(), caller);
    let test = |now, caller| {
        let wanted = (&file(1), RANGE, LockType::Read);
        engine.test_lock((now, caller), &person.client, b"l", wanted)
    };
    assert_eq!(renew(USER), Err(Error::WrongCred));
    assert_eq!(test(later, USER), Ok(()));
    assert_eq!(person.client.renewed(), NOW, "LOCKT by a user without state");
    open(&engine, &person, PLAIN);
    for (caller, refusal) in [(NEIGHBOUR, Error::WrongCred), (STRANGER, Error::Delay)] {
        assert_eq!(renew(caller), Err(refusal), "{caller:?}");
        assert_eq!(test(later, caller), Ok(()));
    }
    assert_eq!(person.client.renewed(), NOW);
    assert_eq!(renew(USER), Ok(()));
    assert_eq!(person.client.renewed(), later);
    assert_eq!(engine.renew(later + SECOND, person.client.id(), VICTIM), Ok(()));
    assert_eq!(engine.renew(later + SECOND * 2, person.client.id(), ELSEWHERE), Ok(()));
    assert_eq!(person.client.renewed(), later + SECOND * 2);
    for (seconds, caller) in [(3, USER), (4, VICTIM)] {
        assert_eq!(test(later + SECOND * seconds, caller), Ok(()));
        assert_eq!(person.client.renewed(), later + SECOND * seconds, "LOCKT by {caller:?}");
    }
}

/// An OPEN under a delegation (`CLAIM_DELEGATE_CUR`) renews the lease only if it succeeds.
#[test]
fn an_open_that_its_delegation_does_not_allow_renews_no_lease() {
    let [(engine, person), _] = Person::both(engine);
    let reading = Wish { share: Share::access(Share::READ), ..PLAIN };
    let given = open(&engine, &person, Wish { delegation: DelegationWish::Read, ..reading });
    let Delegation::Granted { stateid, .. } = given.delegation else { panic!() };
    let claim = Claim::Delegated(stateid);
    let opened = |wish| error(try_open(&engine, NOW + SECOND, &person.client, wish));
    let other_file = opened(Wish { claim, file: 2, ..reading });
    assert_eq!((other_file, person.client.renewed()), (Some(Error::BadStateid), NOW));
    let writing = opened(Wish { claim, ..PLAIN });
    assert_eq!((writing, person.client.renewed()), (Some(Error::Openmode), NOW));
    assert_eq!(opened(Wish { claim, ..reading }), None);
    assert_eq!(person.client.renewed(), NOW + SECOND);
}

/// In minor version 0 an OPEN finds a client by its clientid and renews its lease. A user at
/// another address must not find it.
#[test]
fn a_user_at_another_address_does_not_find_a_client_by_its_clientid() {
    let [(engine, person), _] = Person::both(engine);
    let found = |caller| engine.client_of(person.client.id(), caller).map(drop);
    assert_eq!(found(STRANGER), Err(Error::Delay));
    assert_eq!(person.client.renewed(), NOW);
    assert_eq!(found(NEIGHBOUR), Ok(()));
}
