//! READ and WRITE with a stateid of another user.

use std::sync::Arc;

use comity_state::{
    Caller, Delegation, DelegationWish, Effect, Engine, Error, Io, Opened, Share, Stateid,
};
use comity_vfs::{Cred, Disk, Gid, Uid};

use crate::people::{
    NEIGHBOUR, NOW, PLAIN, Person, SECOND, STRANGER, USER, VICTIM, Wish, caller, client_41, engine,
    error, file, open,
};

/// Asks for an access to file 1 with a stateid; returns an error, or whether the stateid gives the
/// access.
fn access(
    engine: &Engine,
    person: &Person,
    caller: Caller,
    (stateid, access): (&Stateid, u32),
) -> Result<bool, Error> {
    let io = Io { file: &file(1), access, user: None };
    let shown = engine.check_io(person.sender(NOW, caller), stateid, &io)?;
    Ok(shown.is_some())
}

/// A client on another machine.
fn other(engine: &Engine) -> Person {
    let (client, _) = client_41(engine, caller(0, 7), "other");
    Person { client, has_sessions: true }
}

const READING: Wish<'static> = Wish { share: Share::access(Share::READ), ..PLAIN };

#[test]
fn the_stateid_of_another_users_open_counts_as_no_stateid() {
    for (engine, person) in Person::both(engine) {
        let opened = open(&engine, &person, READING).stateid;
        let io = |caller, wanted| access(&engine, &person, caller, (&opened, wanted));
        assert_eq!(io(USER, Share::READ), Ok(true));
        assert_eq!(io(USER, Share::WRITE), Err(Error::Openmode));
        // No other client holds the file.
        assert_eq!(io(NEIGHBOUR, Share::READ), Ok(false));
        assert_eq!(io(NEIGHBOUR, Share::WRITE), Ok(false));
    }
}

#[test]
fn a_write_with_the_open_of_another_user_recalls_delegations_of_other_clients() {
    for (engine, person) in Person::both(engine) {
        let opened = open(&engine, &person, READING).stateid;
        let other = other(&engine);
        let there = caller(0, 7);
        let wish = Wish { caller: there, delegation: DelegationWish::Read, ..READING };
        let given = open(&engine, &other, wish).delegation;
        let Delegation::Granted { stateid, .. } = given else { panic!("{given:?}") };
        while engine.poll_effect().is_some() {}
        let write = access(&engine, &person, NEIGHBOUR, (&opened, Share::WRITE));
        assert_eq!(write, Err(Error::Delay));
        let Some(Effect::Recall { client, .. }) = engine.poll_effect() else { panic!() };
        assert!(Arc::ptr_eq(&client, &other.client));
        engine.delegreturn((other.sender(NOW, there), &file(1)), &stateid).unwrap();
        let write = access(&engine, &person, NEIGHBOUR, (&opened, Share::WRITE));
        assert_eq!(write, Ok(false));
    }
}

#[test]
fn deny_modes_apply_to_a_write_with_the_open_of_another_user() {
    for (engine, person) in Person::both(engine) {
        let opened = open(&engine, &person, READING).stateid;
        let denying = Share { access: Share::READ, deny: Share::WRITE };
        open(&engine, &other(&engine), Wish { share: denying, ..PLAIN });
        let io = |caller, wanted| access(&engine, &person, caller, (&opened, wanted));
        assert_eq!(io(NEIGHBOUR, Share::WRITE), Err(Error::ShareDenied));
        assert_eq!(io(NEIGHBOUR, Share::READ), Ok(false));
    }
}

/// A program that has inherited the open file uses this open. The rights of its user to the file
/// decide about the access.
#[test]
fn the_deny_mode_of_an_open_does_not_deny_a_user_that_uses_its_stateid() {
    for (engine, person) in Person::both(engine) {
        let share = Share { access: Share::BOTH, deny: Share::BOTH };
        let opened = open(&engine, &person, Wish { share, ..PLAIN }).stateid;
        let io = |caller, wanted| access(&engine, &person, caller, (&opened, wanted));
        assert_eq!(io(USER, Share::BOTH), Ok(true));
        assert_eq!(io(NEIGHBOUR, Share::WRITE), Ok(false));
        assert_eq!(io(NEIGHBOUR, Share::READ), Ok(false));
    }
}

/// A delegation belongs to the client and is for all its users.
#[test]
fn a_delegation_can_be_used_by_all_users_of_its_client() {
    for (engine, person) in Person::both(engine) {
        let wish = Wish { delegation: DelegationWish::Write, ..PLAIN };
        let given = open(&engine, &person, wish).delegation;
        let Delegation::Granted { stateid, .. } = given else { panic!("{given:?}") };
        for caller in [USER, NEIGHBOUR] {
            let io = access(&engine, &person, caller, (&stateid, Share::BOTH));
            assert_eq!(io, Ok(true), "{caller:?}");
        }
    }
}

/// A stateid gives no access to users of other machines, nor to another file.
#[test]
fn a_stateid_from_another_address_gives_no_access() {
    let [(engine, person), _] = Person::both(engine);
    let wish = Wish { delegation: DelegationWish::Write, ..PLAIN };
    let opened = open(&engine, &person, wish);
    let Delegation::Granted { stateid, .. } = opened.delegation else { panic!() };
    for shown in [opened.stateid, stateid] {
        let io = access(&engine, &person, STRANGER, (&shown, Share::READ));
        assert_eq!(io, Err(Error::Delay));
        let io = Io { file: &file(2), access: Share::READ, user: None };
        let of_another = engine.check_io(person.sender(NOW + SECOND, USER), &shown, &io);
        assert_eq!(error(of_another), Some(Error::BadStateid));
    }
    assert_eq!(person.client.renewed(), NOW);
}

/// A read with the stateid of another user does not renew the lease.
#[test]
fn a_read_by_another_user_renews_no_lease() {
    let [(engine, person), _] = Person::both(engine);
    let opened = open(&engine, &person, READING).stateid;
    let io = Io { file: &file(1), access: Share::READ, user: None };
    engine.check_io(person.sender(NOW + SECOND, NEIGHBOUR), &opened, &io).unwrap();
    assert_eq!(person.client.renewed(), NOW);
    engine.check_io(person.sender(NOW + SECOND, USER), &opened, &io).unwrap();
    assert_eq!(person.client.renewed(), NOW + SECOND);
}

/// Users that are mapped to one user of the server have the same rights, but each has its own
/// opens.
#[test]
fn a_read_by_a_user_with_the_same_rights_renews_no_lease() {
    let [(engine, person), _] = Person::both(engine);
    let squashed = cred(1, 1);
    let opened = open_checked(&engine, &person, (&squashed, Share::READ), DelegationWish::None);
    let io = Io { file: &file(1), access: Share::READ, user: Some(&squashed) };
    let read = |caller| engine.check_io(person.sender(NOW + SECOND, caller), &opened.stateid, &io);
    assert!(read(NEIGHBOUR).unwrap().unwrap().opened);
    assert_eq!(person.client.renewed(), NOW);
    assert!(read(USER).unwrap().unwrap().opened);
    assert_eq!(person.client.renewed(), NOW + SECOND);
}

#[test]
fn an_access_beyond_its_open_or_delegation_renews_no_lease() {
    for delegation in [DelegationWish::None, DelegationWish::Read] {
        let [(engine, person), _] = Person::both(engine);
        let opened = open(&engine, &person, Wish { delegation, ..READING });
        let stateid = match opened.delegation {
            Delegation::Granted { stateid, .. } => stateid,
            _ => opened.stateid,
        };
        let io = Io { file: &file(1), access: Share::WRITE, user: None };
        let written = engine.check_io(person.sender(NOW + SECOND, USER), &stateid, &io);
        assert_eq!(error(written), Some(Error::Openmode));
        assert_eq!(person.client.renewed(), NOW, "{delegation:?}");
    }
}

/// A delegation is for all users of its client, but their rights to the file are judged after the
/// stateid. A user without rights must not renew the lease of the client.
#[test]
fn a_user_without_rights_to_a_delegated_file_renews_no_lease() {
    let [(engine, person), _] = Person::both(engine);
    let given = open(&engine, &person, Wish { delegation: DelegationWish::Read, ..READING });
    let Delegation::Granted { stateid, .. } = given.delegation else { panic!() };
    let io = Io { file: &file(1), access: Share::READ, user: None };
    let read = |seconds, caller, has_rights: bool| {
        let sender = person.sender(NOW + SECOND * seconds, caller);
        engine.check_io_if(sender, &stateid, &io, &|| has_rights).unwrap();
        person.client.renewed()
    };
    assert_eq!(read(1, NEIGHBOUR, false), NOW);
    assert_eq!(read(2, NEIGHBOUR, true), NOW + SECOND * 2);
    for (seconds, caller) in [(3, USER), (4, VICTIM)] {
        assert_eq!(read(seconds, caller, false), NOW + SECOND * seconds, "{caller:?}");
    }
}

/// An access with the open of another user of the same client is an access of this client.
#[test]
fn a_read_with_the_open_of_another_user_recalls_nothing_of_its_own_client() {
    for (engine, person) in Person::both(engine) {
        let wish = Wish { delegation: DelegationWish::Write, ..PLAIN };
        let opened = open(&engine, &person, wish);
        assert!(matches!(opened.delegation, Delegation::Granted { .. }));
        while engine.poll_effect().is_some() {}
        let read = access(&engine, &person, NEIGHBOUR, (&opened.stateid, Share::READ));
        assert_eq!((read, engine.has_effects()), (Ok(false), false));
    }
}

fn cred(uid: u32, gid: u32) -> Arc<Cred<Disk>> {
    Arc::new(Cred::new(Uid::new(uid), Gid::new(gid)))
}

/// OPEN of file 1 by a user whose rights to the file were checked.
fn open_checked(
    engine: &Engine,
    person: &Person,
    (user, access): (&Arc<Cred<Disk>>, u32),
    wish: DelegationWish,
) -> Opened {
    let share = Share::access(access);
    open(engine, person, Wish { share, delegation: wish, user: Some(user), ..PLAIN })
}

/// Returns whether the user's right to this access was checked when the file was opened.
fn is_opened(
    engine: &Engine,
    person: &Person,
    stateid: &Stateid,
    (user, access): (Option<&Arc<Cred<Disk>>>, u32),
) -> bool {
    let io = Io { file: &file(1), access, user };
    engine.check_io(person.sender(NOW, USER), stateid, &io).unwrap().unwrap().opened
}

#[test]
fn the_rights_to_an_open_were_checked_for_its_user_and_its_access_alone() {
    let (user, same, other_group) = (cred(1, 1), cred(1, 1), cred(1, 2));
    for (engine, person) in Person::both(engine) {
        let both = (&user, Share::BOTH);
        let opened = open_checked(&engine, &person, both, DelegationWish::None).stateid;
        let is_opened = |user, wanted| is_opened(&engine, &person, &opened, (user, wanted));
        assert!(is_opened(Some(&user), Share::WRITE));
        assert!(is_opened(Some(&user), Share::READ));
        assert!(is_opened(Some(&same), Share::READ));
        assert!(!is_opened(Some(&other_group), Share::READ));
        assert!(!is_opened(None, Share::READ));
    }
}

#[test]
fn an_open_for_writing_may_read_but_the_right_to_read_was_not_checked() {
    let user = cred(1, 1);
    for (engine, person) in Person::both(engine) {
        let write = (&user, Share::WRITE);
        let opened = open_checked(&engine, &person, write, DelegationWish::None).stateid;
        assert!(is_opened(&engine, &person, &opened, (Some(&user), Share::WRITE)));
        assert!(!is_opened(&engine, &person, &opened, (Some(&user), Share::READ)));
    }
}

#[test]
fn the_rights_to_a_delegation_were_checked_for_the_user_and_the_access_of_its_open() {
    let (user, other) = (cred(1, 1), cred(2, 1));
    for (access, reads) in [(Share::BOTH, true), (Share::WRITE, false)] {
        for (engine, person) in Person::both(engine) {
            let opened = open_checked(&engine, &person, (&user, access), DelegationWish::Write);
            let given = opened.delegation;
            let Delegation::Granted { stateid, .. } = given else { panic!("{given:?}") };
            let is_opened = |user, wanted| is_opened(&engine, &person, &stateid, (user, wanted));
            assert!(is_opened(Some(&user), Share::WRITE));
            assert_eq!(is_opened(Some(&user), Share::READ), reads);
            assert!(!is_opened(Some(&other), Share::WRITE));
            assert!(!is_opened(None, Share::WRITE));
        }
    }
}
