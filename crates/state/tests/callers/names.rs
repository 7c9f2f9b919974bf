//! The callers that may take the name of a client with state.

use std::net::IpAddr;
use std::time::Duration;

use comity_state::{Caller, DelegationWish, Engine, Error, Io, Origin, Principal, Result};

use crate::people::{
    ELSEWHERE, NAME, NEIGHBOUR, NOW, PLAIN, Person, SECOND, STRANGER, USER, VICTIM, Wish, announce,
    arrive, caller, client_40, client_41, confirm, create_session, engine, error, exchange, file,
    open,
};

/// The victim with an open file, and a function that returns whether the open still exists.
fn with_open() -> [(Engine, Person, impl Fn(&Engine, &Person) -> bool); 2] {
    Person::both(engine).map(|(engine, person)| {
        let stateid = open(&engine, &person, PLAIN).stateid;
        let has_open = move |engine: &Engine, person: &Person| {
            engine.test_stateid(person.sender(NOW, VICTIM), &stateid).is_ok()
        };
        (engine, person, has_open)
    })
}

/// Introduces and confirms another instance of the victim.
fn take_name(
    engine: &Engine,
    person: &Person,
    now: Duration,
    (caller, instance): (Caller, u8),
) -> Result<()> {
    if person.has_sessions {
        return arrive(engine, now, caller, (NAME, instance)).map(drop);
    }
    confirm(engine, now, caller, announce(engine, now, caller, (NAME, instance))?)
}

#[test]
fn the_same_principal_at_another_address_gets_the_name_when_the_lease_has_expired() {
    for (engine, person, has_open) in with_open() {
        let lease = engine.settings().lease;
        for now in [NOW, NOW + lease - SECOND] {
            let taken = take_name(&engine, &person, now, (ELSEWHERE, 2));
            assert_eq!(taken, Err(Error::Delay), "{now:?}");
        }
        assert!(has_open(&engine, &person));
        // The request for the name did not renew the lease of its holder.
        take_name(&engine, &person, NOW + lease, (ELSEWHERE, 2)).unwrap();
        assert!(!has_open(&engine, &person));
        assert!(engine.client_by_id(person.client.id()).is_none());
        assert_eq!(engine.census().states, 0);
    }
}

#[test]
fn another_principal_gets_clid_inuse() {
    for (engine, person, has_open) in with_open() {
        for caller in [NEIGHBOUR, STRANGER] {
            for instance in [1, 2] {
                let taken = take_name(&engine, &person, NOW, (caller, instance));
                assert_eq!(taken, Err(Error::ClidInuse), "{caller:?} {instance}");
            }
        }
        assert!(has_open(&engine, &person));
        assert_eq!(person.client.renewed(), NOW);
        take_name(&engine, &person, NOW + engine.settings().lease, (STRANGER, 2)).unwrap();
        assert!(!has_open(&engine, &person));
    }
}

/// RFC 7530, 16.33.5, allows others to introduce themselves with the name of a client without
/// state.
#[test]
fn a_client_of_4_0_that_has_nothing_open_keeps_its_name_as_long_as_its_lease() {
    let engine = engine();
    let idle = client_40(&engine, VICTIM, NAME);
    let said = announce(&engine, NOW, STRANGER, (NAME, 2)).unwrap();
    assert_eq!(confirm(&engine, NOW, STRANGER, said), Err(Error::ClidInuse));
    assert_eq!(engine.renew(NOW, idle.id(), VICTIM), Ok(()));
    let later = NOW + engine.settings().lease;
    assert_eq!(confirm(&engine, later, STRANGER, said), Ok(()));
}

/// EXCHANGE_ID itself must refuse, because its answer contains the clientid.
#[test]
fn another_principal_does_not_get_the_clientid_of_a_name() {
    let [_, (engine, person, _)] = with_open();
    for caller in [NEIGHBOUR, STRANGER] {
        let said = exchange(&engine, NOW + SECOND, caller, (NAME, 1));
        assert_eq!(said, Err(Error::ClidInuse));
    }
    assert_eq!(person.client.renewed(), NOW);
    let said = exchange(&engine, NOW, VICTIM, (NAME, 1)).unwrap();
    assert_eq!(said.clientid, person.client.id());
}

#[test]
fn a_client_that_restarts_at_its_origin_replaces_its_earlier_instance() {
    for (engine, person, has_open) in with_open() {
        take_name(&engine, &person, NOW, (VICTIM, 2)).unwrap();
        assert!(!has_open(&engine, &person));
        let census = engine.census();
        assert_eq!((census.clients, census.states), (1, 0));
    }
}

/// The earlier instance remains until the new one is confirmed.
#[test]
fn a_client_that_restarts_ends_its_earlier_instance_only_when_it_confirms() {
    for (engine, person, has_open) in with_open() {
        if person.has_sessions {
            exchange(&engine, NOW, VICTIM, (NAME, 2)).unwrap();
        } else {
            announce(&engine, NOW, VICTIM, (NAME, 2)).unwrap();
        }
        assert!(has_open(&engine, &person));
    }
}

#[test]
fn a_client_that_only_moves_keeps_its_clientid_and_its_state() {
    let later = NOW + SECOND;
    for (engine, person, has_open) in with_open() {
        let id = if person.has_sessions {
            let known = exchange(&engine, later, ELSEWHERE, (NAME, 1)).unwrap();
            assert!(known.confirmed);
            known.clientid
        } else {
            let said = announce(&engine, later, ELSEWHERE, (NAME, 1)).unwrap();
            confirm(&engine, later, ELSEWHERE, said).unwrap();
            said.clientid
        };
        assert_eq!(id, person.client.id());
        assert!(has_open(&engine, &person));
        assert_eq!(person.client.renewed(), later);
    }
}

/// From then on the client is at its new address, and calls from there renew its lease.
#[test]
fn a_client_that_moved_renews_its_lease_from_its_new_address() {
    let later = NOW + SECOND;
    let [(old, old_person, _), (new, new_person, _)] = with_open();
    old.renew(later, old_person.client.id(), ELSEWHERE).unwrap();
    assert_eq!(old_person.client.renewed(), later);
    exchange(&new, NOW, ELSEWHERE, (NAME, 1)).unwrap();
    exchange(&new, later, ELSEWHERE, (NAME, 1)).unwrap();
    assert_eq!(new_person.client.renewed(), later);
}

#[test]
fn a_client_that_moved_can_restart_at_its_new_address() {
    for (engine, person, has_open) in with_open() {
        take_name(&engine, &person, NOW, (ELSEWHERE, 1)).unwrap();
        assert_eq!(engine.census().opens, 1);
        let earlier = take_name(&engine, &person, NOW, (VICTIM, 2));
        assert_eq!(earlier, Err(Error::Delay), "the client has moved from there");
        take_name(&engine, &person, NOW, (ELSEWHERE, 2)).unwrap();
        assert!(!has_open(&engine, &person));
    }
}

/// Users of a client of minor version 0 are accepted at the address from which the client's own
/// principal called last.
#[test]
fn users_are_accepted_at_the_address_of_their_clients_principal() {
    let [(engine, person, _), _] = with_open();
    let user_there = caller(1000, 2);
    let wish = DelegationWish::None;
    let stateid = open(&engine, &person, Wish { delegation: wish, ..PLAIN }).stateid;
    let reads = |caller| {
        let io = Io { file: &file(1), access: 1, user: None };
        error(engine.check_io(person.sender(NOW, caller), &stateid, &io))
    };
    assert_eq!((reads(USER), reads(user_there)), (None, Some(Error::Delay)));
    engine.renew(NOW, person.client.id(), ELSEWHERE).unwrap();
    assert_eq!((reads(USER), reads(user_there)), (Some(Error::Delay), None));
}

#[test]
fn an_introduction_by_a_stranger_does_not_replace_the_victims_unconfirmed_one() {
    for caller in [STRANGER, NEIGHBOUR, ELSEWHERE] {
        let engine = engine();
        let said = announce(&engine, NOW, VICTIM, (NAME, 1)).unwrap();
        let other = announce(&engine, NOW, caller, (NAME, 2)).unwrap();
        assert_ne!(said.clientid, other.clientid);
        assert_eq!(confirm(&engine, NOW, VICTIM, said), Ok(()));
        let known = exchange(&engine, NOW, VICTIM, (NAME, 1)).unwrap();
        let other = exchange(&engine, NOW, caller, (NAME, 2)).unwrap();
        assert_ne!(known.clientid, other.clientid);
        let made = create_session(&engine, NOW, VICTIM, (known.clientid, known.sequenceid));
        assert!(made.is_ok(), "{made:?}");
    }
}

/// The name is free when the caller introduces itself, but not when it confirms.
#[test]
fn an_introduction_cannot_be_confirmed_when_the_name_is_in_use_meanwhile() {
    for (caller, refusal) in [(STRANGER, Error::ClidInuse), (ELSEWHERE, Error::Delay)] {
        let engine = engine();
        let early = exchange(&engine, NOW, caller, (NAME, 2)).unwrap();
        let (_, session) = client_41(&engine, VICTIM, NAME);
        let made = create_session(&engine, NOW, caller, (early.clientid, early.sequenceid));
        assert_eq!(made, Err(refusal), "{caller:?}");
        assert!(engine.session(&session).is_some());
    }
}

/// All introductions of a caller under one name take one place together.
#[test]
fn a_caller_has_one_unconfirmed_client_of_a_name() {
    let engine = engine();
    for instance in 0..9 {
        exchange(&engine, NOW, STRANGER, (NAME, instance)).unwrap();
        announce(&engine, NOW, STRANGER, (NAME, instance)).unwrap();
    }
    assert_eq!(engine.census().clients, 2, "one of each minor version");
}

/// Two machines in one IPv6 network are as different as two in one IPv4 network.
#[test]
fn a_neighbor_in_an_ipv6_network_does_not_end_a_client() {
    let at =
        |address: &str| Caller { origin: Origin::of(address.parse::<IpAddr>().unwrap()), ..VICTIM };
    let (victim, neighbour) = (at("2001:db8::1"), at("2001:db8::2"));
    let engine = engine();
    let (client, _) = client_41(&engine, victim, NAME);
    assert_eq!(exchange(&engine, NOW, neighbour, (NAME, 2)).err(), Some(Error::Delay));
    assert!(exchange(&engine, NOW, victim, (NAME, 1)).unwrap().confirmed);
    let old = client_40(&engine, victim, NAME);
    let said = announce(&engine, NOW, neighbour, (NAME, 2)).unwrap();
    assert_eq!(confirm(&engine, NOW, neighbour, said), Err(Error::Delay), "it has nothing open");
    assert_eq!(engine.renew(NOW, old.id(), victim), Ok(()));
    assert!(engine.client_by_id(client.id()).is_some());
}

/// FreeBSD sends SETCLIENTID as the user who first opens a file, and RENEW and the whole recovery
/// as root, each time with another verifier.
#[test]
fn root_of_a_machine_may_act_for_a_client_that_a_user_introduced() {
    let user = Caller { principal: Principal::new(1, 1000), ..VICTIM };
    let system = Caller { principal: Principal::SYSTEM, ..VICTIM };
    let elsewhere = Caller { principal: Principal::SYSTEM, ..ELSEWHERE };
    let (engine, later) = (engine(), NOW + SECOND);
    let client = client_40(&engine, user, NAME);
    assert_eq!(engine.renew(later, client.id(), elsewhere), Err(Error::Delay));
    assert_eq!(engine.renew(later, client.id(), system), Ok(()));
    assert_eq!(client.renewed(), later);
    let said = announce(&engine, later, elsewhere, (NAME, 2)).unwrap();
    assert_eq!(confirm(&engine, later, elsewhere, said), Err(Error::ClidInuse));
    let said = announce(&engine, later, system, (NAME, 2)).unwrap();
    confirm(&engine, later, system, said).unwrap();
}
