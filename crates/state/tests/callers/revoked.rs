//! A client learns from the server that it has revoked state until it frees that state. So only the
//! user who had the state, and the client itself, may free it.

use std::sync::Arc;

use comity_keys::{Algorithm, PublicKey};
use comity_state::{
    ByteRange, Delegation, DelegationWish, Engine, Error, GrantedAccess, Grantee, Lock, LockType,
    Locker, Share, Stateid,
};

use crate::people::{
    NAME, NEIGHBOUR, NOW, PLAIN, Person, USER, VICTIM, Wish, client_41, engine, file, open,
    try_open,
};

fn person(engine: &Engine) -> Person {
    let (client, _) = client_41(engine, VICTIM, NAME);
    Person { client, has_sessions: true }
}

/// Returns a delegation of the user that was not returned in time.
fn overdue(engine: &Engine, person: &Person) -> Stateid {
    let given = open(engine, person, Wish { delegation: DelegationWish::Write, ..PLAIN });
    let Delegation::Granted { stateid, .. } = given.delegation else { panic!("{given:?}") };
    let recall = engine.break_delegations(NOW, None, &file(1), Share::access(Share::BOTH));
    assert_eq!(recall, Err(Error::Delay));
    engine.recall_sent(NOW, &person.client, &stateid);
    engine.tick(NOW + engine.settings().lease);
    stateid
}

/// Returns an open, a lock and a delegation of the user that ended with the right to the file.
fn without_right(engine: &Engine, person: &Person) -> [Stateid; 3] {
    let key = PublicKey::from_raw(Algorithm::Ed25519, &[1; 32]).unwrap();
    let grantee = Arc::new(Grantee { key, address: [10, 0, 0, 1].into(), export: 1, user: None });
    let wish = Wish { delegation: DelegationWish::Write, grantee: Some(&grantee), ..PLAIN };
    let opened = try_open(engine, NOW, &person.client, wish).unwrap();
    let Delegation::Granted { stateid: delegation, .. } = opened.delegation else { panic!() };
    let locker = Locker::New { open: opened.stateid, owner: b"l", seqid: 1 };
    let (range, kind) = (ByteRange::ALL, LockType::Write);
    let wanted = Lock { file: file(1), range, kind, reclaim: false, wait: false, locker };
    let lock = engine.lock(person.sender(NOW, USER), &wanted).unwrap();
    let ended = (&file(1), &*grantee);
    assert_eq!(engine.end_rights(NOW, &person.client, ended, GrantedAccess::default()), 3);
    [opened.stateid, lock, delegation]
}

/// Asserts that another user cannot free a state, so that the client is still told of it.
fn only_its_user_frees(engine: &Engine, person: &Person, stateid: &Stateid, why: Error) {
    let before = engine.census();
    let free = |caller| engine.free_stateid(person.sender(NOW, caller), stateid);
    assert_eq!(free(NEIGHBOUR), Err(Error::WrongCred));
    assert_eq!(engine.census(), before);
    assert_eq!(engine.test_stateid(person.sender(NOW, USER), stateid), Err(why));
    assert_eq!(free(USER), Ok(()));
    assert_eq!(free(USER), Err(Error::BadStateid));
}

#[test]
fn another_user_cannot_free_a_delegation_that_was_not_returned_in_time() {
    let engine = engine();
    let person = person(&engine);
    let revoked = overdue(&engine, &person);
    only_its_user_frees(&engine, &person, &revoked, Error::DelegRevoked);
}

#[test]
fn another_user_cannot_free_states_whose_right_has_ended() {
    let engine = engine();
    let person = person(&engine);
    for revoked in without_right(&engine, &person) {
        only_its_user_frees(&engine, &person, &revoked, Error::AdminRevoked);
    }
}

/// A kernel may free state as its own principal (RFC 8881, 18.35.3: `SP4_MACH_CRED`).
#[test]
fn the_principal_of_the_client_may_free_revoked_state_of_its_users() {
    let engine = engine();
    let person = person(&engine);
    for revoked in without_right(&engine, &person) {
        assert_eq!(engine.free_stateid(person.sender(NOW, VICTIM), &revoked), Ok(()));
    }
    assert_eq!(engine.census().states, 0);
}

/// An open that several users share belongs to the client, even after it was revoked.
#[test]
fn any_user_may_free_a_revoked_open_that_several_users_shared() {
    let engine = engine();
    let person = person(&engine);
    let key = PublicKey::from_raw(Algorithm::Ed25519, &[1; 32]).unwrap();
    let grantee = Arc::new(Grantee { key, address: [10, 0, 0, 1].into(), export: 1, user: None });
    let opened = [USER, NEIGHBOUR].map(|caller| {
        let wish = Wish { caller, grantee: Some(&grantee), ..PLAIN };
        try_open(&engine, NOW, &person.client, wish).unwrap().stateid
    });
    let ended = (&file(1), &*grantee);
    assert_eq!(engine.end_rights(NOW, &person.client, ended, GrantedAccess::default()), 1);
    assert_eq!(engine.free_stateid(person.sender(NOW, NEIGHBOUR), &opened[1]), Ok(()));
}

/// TEST_STATEID changes nothing, and a client may test the stateids of all its users in one
/// request.
#[test]
fn any_user_of_a_client_may_test_its_stateids() {
    for (engine, person) in Person::both(engine) {
        let opened = open(&engine, &person, PLAIN).stateid;
        let before = (engine.census(), person.client.renewed());
        let later = NOW + engine.settings().lease / 2;
        let tested = engine.test_stateid(person.sender(later, NEIGHBOUR), &opened);
        assert_eq!(tested, Ok(()));
        assert_eq!((engine.census(), person.client.renewed()), before);
    }
}
