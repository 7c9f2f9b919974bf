//! A session belongs to the principal that introduced its client, at the address of that client.

use std::sync::Arc;

use comity_state::{
    Caller, ConnectionId, Direction, Engine, Error, Result, Sequence, Sequenced, SessionId, Ticket,
};

use crate::people::{
    ELSEWHERE, NAME, NEIGHBOUR, NOW, SECOND, STRANGER, VICTIM, arrive, caller, client_41,
    connection, create_session, engine, error, exchange,
};

/// A request of a slot, on the connection of the caller's address.
fn request(session: SessionId, seqid: u32, caller: Caller) -> Sequence {
    Sequence {
        session,
        seqid,
        slot: 0,
        highest_slot: 0,
        cache_this: true,
        operations: 2,
        request_bytes: 200,
        digest: seqid.into(),
        connection: connection(caller),
        origin: caller.origin,
    }
}

fn begun(sequenced: Result<Sequenced>) -> Ticket {
    match sequenced {
        Ok(Sequenced::New(ticket)) => ticket,
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_principal_makes_no_session_of_a_client() {
    let engine = engine();
    let introduced = exchange(&engine, NOW, VICTIM, (NAME, 1)).unwrap();
    let (id, sequence) = (introduced.clientid, introduced.sequenceid);
    for caller in [NEIGHBOUR, STRANGER] {
        let made = create_session(&engine, NOW, caller, (id, sequence));
        assert_eq!(
            made,
            Err(Error::ClidInuse),
            "another principal makes a session of an unconfirmed client"
        );
    }
    let session = create_session(&engine, NOW, VICTIM, (id, sequence)).unwrap();
    for caller in [NEIGHBOUR, STRANGER] {
        for sequence in [sequence, sequence + 1, sequence + 2] {
            let made = create_session(&engine, NOW + SECOND, caller, (id, sequence));
            assert_eq!(made, Err(Error::ClidInuse), "{sequence}");
        }
    }
    let client = Arc::clone(engine.session(&session).unwrap().client());
    assert_eq!((client.renewed(), client.sessions()), (NOW, vec![session]));
    let again = create_session(&engine, NOW, VICTIM, (id, sequence));
    assert_eq!(again, Ok(session), "its own retry is answered");
}

#[test]
fn another_principal_changes_nothing_about_a_session() {
    let engine = engine();
    let (client, session) = client_41(&engine, VICTIM, NAME);
    let known = engine.session(&session).unwrap();
    let back = known.back();
    for caller in [NEIGHBOUR, STRANGER] {
        let later = NOW + SECOND;
        for connection in [connection(VICTIM), ConnectionId(9)] {
            let bound =
                engine.bind_connection(later, &session, (connection, Direction::Both), caller);
            assert_eq!(bound, Err(Error::WrongCred));
            let destroyed = engine.destroy_session(&session, (connection, caller));
            assert_eq!(destroyed, Err(Error::WrongCred));
        }
        let changed = engine.backchannel_ctl(&known, (9, Box::default()), caller);
        assert_eq!(changed, Err(Error::WrongCred));
        let destroyed = engine.destroy_clientid(later, client.id(), caller);
        assert_eq!(destroyed, Err(Error::WrongCred));
    }
    assert_eq!((known.connections(), known.back()), (1, back));
    assert_eq!(client.renewed(), NOW);
}

/// The refusal does not reveal whether the client could be destroyed.
#[test]
fn another_principal_cannot_destroy_a_client_without_state() {
    let engine = engine();
    let introduced = exchange(&engine, NOW, VICTIM, (NAME, 1)).unwrap();
    let destroyed = |caller| engine.destroy_clientid(NOW, introduced.clientid, caller);
    assert_eq!(destroyed(NEIGHBOUR), Err(Error::WrongCred));
    assert_eq!(destroyed(STRANGER), Err(Error::WrongCred));
    assert_eq!(destroyed(VICTIM), Ok(()));
}

#[test]
fn another_principal_cannot_end_the_reclaim_of_a_client() {
    let engine = engine();
    let session = arrive(&engine, NOW, VICTIM, (NAME, 1)).unwrap();
    let client = Arc::clone(engine.session(&session).unwrap().client());
    for caller in [NEIGHBOUR, STRANGER] {
        assert_eq!(engine.reclaim_complete(NOW, &client, caller), Err(Error::WrongCred));
    }
    assert_eq!(engine.reclaim_complete(NOW, &client, VICTIM), Ok(()));
}

/// The slot does not change: the client's next request is new, and its last one is answered from
/// the slot.
#[test]
fn a_request_from_another_address_does_not_change_the_slot() {
    let engine = engine();
    let (client, session) = client_41(&engine, VICTIM, NAME);
    begun(engine.sequence(NOW, &request(session, 1, VICTIM))).answered(Some(b"one"));
    for caller in [ELSEWHERE, STRANGER] {
        for seqid in [0, 1, 2, 3] {
            let refused = engine.sequence(NOW + SECOND, &request(session, seqid, caller));
            assert_eq!(error(refused.map(drop)), Some(Error::ConnNotBound), "{seqid}");
        }
    }
    assert_eq!((client.renewed(), engine.session(&session).unwrap().connections()), (NOW, 1));
    let again = engine.sequence(NOW, &request(session, 1, VICTIM));
    assert!(matches!(again, Ok(Sequenced::Again(answer)) if *answer == *b"one"));
    begun(engine.sequence(NOW, &request(session, 2, VICTIM))).answered(Some(b"two"));
}

fn bind(engine: &Engine, session: &SessionId, caller: Caller) -> Result<Direction> {
    engine.bind_connection(NOW, session, (connection(caller), Direction::Both), caller)
}

#[test]
fn a_client_that_moved_continues_when_its_principal_has_bound_the_connection() {
    let engine = engine();
    let (_, session) = client_41(&engine, VICTIM, NAME);
    assert_eq!(bind(&engine, &session, STRANGER), Err(Error::WrongCred));
    let refused = engine.sequence(NOW, &request(session, 1, ELSEWHERE));
    assert_eq!(error(refused.map(drop)), Some(Error::ConnNotBound));
    assert_eq!(bind(&engine, &session, ELSEWHERE), Ok(Direction::Both));
    begun(engine.sequence(NOW, &request(session, 1, ELSEWHERE))).answered(Some(b"one"));
    // Other connections from its new address need not be bound.
    let other = Sequence { connection: ConnectionId(99), ..request(session, 2, ELSEWHERE) };
    begun(engine.sequence(NOW, &other)).answered(Some(b"two"));
}

/// EXCHANGE_ID and CREATE_SESSION prove the new address as BIND_CONN_TO_SESSION does.
#[test]
fn a_client_continues_at_an_address_that_its_principal_has_proved() {
    for exchanges in [true, false] {
        let engine = engine();
        let (client, session) = client_41(&engine, VICTIM, NAME);
        let refused = engine.sequence(NOW, &request(session, 1, ELSEWHERE));
        assert_eq!(error(refused.map(drop)), Some(Error::ConnNotBound));
        if exchanges {
            exchange(&engine, NOW, ELSEWHERE, (NAME, 1)).unwrap();
        } else {
            create_session(&engine, NOW, ELSEWHERE, (client.id(), 2)).unwrap();
        }
        begun(engine.sequence(NOW, &request(session, 1, ELSEWHERE))).answered(Some(b"one"));
    }
}

/// A connection stays bound when the client calls from another address, so that a client with two
/// addresses can use both at once (RFC 8881, 2.10.5).
#[test]
fn a_client_uses_connections_of_two_addresses_at_once() {
    let engine = engine();
    let (_, session) = client_41(&engine, VICTIM, NAME);
    bind(&engine, &session, ELSEWHERE).unwrap();
    for (seqid, caller) in [(1, VICTIM), (2, ELSEWHERE), (3, VICTIM)] {
        begun(engine.sequence(NOW, &request(session, seqid, caller))).answered(Some(b"x"));
    }
    let elsewhere = caller(0, 3);
    let refused = engine.sequence(NOW, &request(session, 4, elsewhere));
    assert_eq!(error(refused.map(drop)), Some(Error::ConnNotBound));
}
