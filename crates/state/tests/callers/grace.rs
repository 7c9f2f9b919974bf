//! After a restart of the server, a name still belongs to the client that had it before.

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    Caller, Claim, Client, ClientProtocol, Engine, Error, Identity, OriginChannel, Principal,
    Record, RecordedClient, Recovered, Result, Settings,
};

use crate::people::{
    ELSEWHERE, NAME, NEIGHBOUR, NOW, PLAIN, SECOND, STRANGER, VICTIM, Wish, announce, arrive,
    confirm, exchange, owner, try_open,
};

const PROTOCOLS: [ClientProtocol; 2] = [ClientProtocol::Setclientid, ClientProtocol::ExchangeId];

fn restarted(store: Recovered) -> Engine {
    let settings = Settings { durable: true, ..Settings::new(2, [7; 16]) };
    Engine::new(NOW, settings, store)
}

/// Records of the victim, a client of either minor version, and of another client that does not
/// come back.
fn store(protocol: ClientProtocol) -> Recovered {
    let Caller { principal, origin } = VICTIM;
    let identity = Identity { principal, origin, verifier: owner(NAME, 1).verifier };
    let mut store = Recovered::new();
    for id in [NAME, "other"] {
        let client =
            RecordedClient { protocol, channel: OriginChannel::Plain, id: id.as_bytes().into() };
        store.apply(Record::Client(client, Some(identity)));
    }
    store
}

/// A server that has restarted.
fn with_victim(protocol: ClientProtocol) -> Engine {
    restarted(store(protocol))
}

/// Introduces and confirms a client of this name.
fn come(
    engine: &Engine,
    (now, protocol): (Duration, ClientProtocol),
    caller: Caller,
    name: (&str, u8),
) -> Result<Arc<Client>> {
    if protocol == ClientProtocol::ExchangeId {
        let session = arrive(engine, now, caller, name)?;
        return Ok(Arc::clone(engine.session(&session).unwrap().client()));
    }
    let said = announce(engine, now, caller, name)?;
    confirm(engine, now, caller, said)?;
    engine.client_of(said.clientid, caller)
}

/// OPEN with CLAIM_PREVIOUS.
fn reclaim(engine: &Engine, client: &Arc<Client>, caller: Caller) -> Result<()> {
    let claim = Claim::Previous(None);
    try_open(engine, NOW, client, Wish { caller, claim, ..PLAIN }).map(drop)
}

#[test]
fn no_other_client_can_take_the_name_of_a_client_that_may_reclaim() {
    for protocol in PROTOCOLS {
        let engine = with_victim(protocol);
        for (caller, instance, refusal) in [
            (NEIGHBOUR, 1, Error::ClidInuse),
            (NEIGHBOUR, 2, Error::ClidInuse),
            (STRANGER, 1, Error::ClidInuse),
            (STRANGER, 2, Error::ClidInuse),
            (ELSEWHERE, 2, Error::Delay),
        ] {
            let came = come(&engine, (NOW, protocol), caller, (NAME, instance)).map(drop);
            assert_eq!(came, Err(refusal), "{caller:?} {instance}");
        }
        let victim = come(&engine, (NOW, protocol), VICTIM, (NAME, 1)).unwrap();
        assert_eq!(reclaim(&engine, &victim, VICTIM), Ok(()));
    }
}

#[test]
fn a_client_that_has_moved_reclaims() {
    for protocol in PROTOCOLS {
        let engine = with_victim(protocol);
        let client = come(&engine, (NOW, protocol), ELSEWHERE, (NAME, 1)).unwrap();
        assert_eq!(reclaim(&engine, &client, ELSEWHERE), Ok(()));
    }
}

#[test]
fn a_client_that_has_restarted_at_its_origin_reclaims() {
    for protocol in PROTOCOLS {
        let engine = with_victim(protocol);
        let client = come(&engine, (NOW, protocol), VICTIM, (NAME, 2)).unwrap();
        assert_eq!(reclaim(&engine, &client, VICTIM), Ok(()));
    }
}

/// A client that has come back keeps its name, although it has no state yet.
#[test]
fn no_other_client_can_take_the_name_of_a_client_that_has_come_back() {
    for protocol in PROTOCOLS {
        let engine = with_victim(protocol);
        let victim = come(&engine, (NOW, protocol), VICTIM, (NAME, 1)).unwrap();
        for (caller, refusal) in [(STRANGER, Error::ClidInuse), (ELSEWHERE, Error::Delay)] {
            let came = come(&engine, (NOW, protocol), caller, (NAME, 2)).map(drop);
            assert_eq!(came, Err(refusal), "{caller:?}");
        }
        assert_eq!(reclaim(&engine, &victim, VICTIM), Ok(()));
    }
}

#[test]
fn a_stranger_of_another_name_reclaims_nothing() {
    for protocol in PROTOCOLS {
        let engine = with_victim(protocol);
        let stranger = come(&engine, (NOW, protocol), STRANGER, ("stranger", 1)).unwrap();
        assert_eq!(reclaim(&engine, &stranger, STRANGER), Err(Error::ReclaimBad));
        let _ = engine.reclaim_complete(NOW, &stranger, STRANGER);
        assert!(engine.is_in_grace(), "grace ends although another client may reclaim");
        let victim = come(&engine, (NOW, protocol), VICTIM, (NAME, 1)).unwrap();
        assert_eq!(reclaim(&engine, &victim, VICTIM), Ok(()));
    }
}

#[test]
fn the_name_of_a_client_that_did_not_come_back_is_free_after_grace() {
    for protocol in PROTOCOLS {
        let engine = with_victim(protocol);
        let after = NOW + engine.settings().grace;
        engine.tick(after);
        assert!(!engine.is_in_grace());
        come(&engine, (after, protocol), STRANGER, (NAME, 2)).unwrap();
    }
}

/// Two clients of the same name, one of each protocol, are different clients.
#[test]
fn a_name_of_the_other_minor_version_is_another_name() {
    let engine = with_victim(ClientProtocol::ExchangeId);
    let stranger = come(&engine, (NOW, ClientProtocol::Setclientid), STRANGER, (NAME, 1)).unwrap();
    assert_eq!(reclaim(&engine, &stranger, STRANGER), Err(Error::ReclaimBad));
}

/// An earlier version of the program did not record the identity of a client.
#[test]
fn a_client_that_was_recorded_without_its_identity_reclaims() {
    for protocol in PROTOCOLS {
        let mut store = Recovered::new();
        store.apply(Record::Client(
            RecordedClient { protocol, channel: OriginChannel::Plain, id: NAME.as_bytes().into() },
            None,
        ));
        let engine = restarted(store);
        assert!(engine.is_in_grace());
        let client = come(&engine, (NOW, protocol), ELSEWHERE, (NAME, 2)).unwrap();
        assert_eq!(reclaim(&engine, &client, ELSEWHERE), Ok(()));
    }
}

fn stored(engine: &Engine, mut store: Recovered) -> Recovered {
    let mut records = Vec::new();
    let mark = engine.poll_records(&mut records);
    records.into_iter().for_each(|record| store.apply(record));
    engine.stored(mark);
    store
}

/// After the next restart, a client is known by its latest identity, which it got in this grace
/// period.
#[test]
fn a_client_is_recorded_with_its_latest_identity() {
    for protocol in PROTOCOLS {
        let engine = with_victim(protocol);
        let client = come(&engine, (NOW, protocol), ELSEWHERE, (NAME, 1)).unwrap();
        if protocol == ClientProtocol::ExchangeId {
            engine.reclaim_complete(NOW, &client, ELSEWHERE).unwrap();
        }
        let engine = restarted(stored(&engine, store(protocol)));
        let gone = come(&engine, (NOW, protocol), VICTIM, (NAME, 2)).map(drop);
        assert_eq!(gone, Err(Error::Delay), "the client has moved from there");
        let client = come(&engine, (NOW, protocol), ELSEWHERE, (NAME, 2)).unwrap();
        assert_eq!(reclaim(&engine, &client, ELSEWHERE), Ok(()));
    }
}

/// The client has moved, came back and then restarted: it has nothing left to reclaim, but state
/// that it gets from now on can be reclaimed after the next restart of the server.
#[test]
fn a_client_that_restarts_in_grace_at_its_new_address_stays_recorded() {
    let engine = with_victim(ClientProtocol::ExchangeId);
    let come_again = |instance| {
        come(&engine, (NOW, ClientProtocol::ExchangeId), ELSEWHERE, (NAME, instance)).unwrap()
    };
    come_again(1);
    let client = come_again(2);
    assert_eq!(reclaim(&engine, &client, ELSEWHERE), Err(Error::ReclaimBad));
    engine.reclaim_complete(NOW, &client, ELSEWHERE).unwrap();
    let after = NOW + engine.settings().grace;
    exchange(&engine, after - SECOND, ELSEWHERE, (NAME, 2)).unwrap();
    engine.tick(after);
    assert!(!engine.is_in_grace());
    let store = stored(&engine, store(ClientProtocol::ExchangeId));
    let is_known = store.records().any(|record| match record {
        Record::Client(known, _) => *known.id == *NAME.as_bytes(),
        _ => false,
    });
    assert!(is_known, "it is forgotten");
}

/// FreeBSD does this with minor version 0.
#[test]
fn root_of_a_machine_reclaims_state_of_a_client_that_a_user_introduced() {
    let as_user = |principal| Caller { principal, ..VICTIM };
    let Caller { principal, origin } = as_user(Principal::new(1, 1000));
    let identity = Identity { principal, origin, verifier: owner(NAME, 1).verifier };
    let client = RecordedClient {
        protocol: ClientProtocol::Setclientid,
        channel: OriginChannel::Plain,
        id: NAME.as_bytes().into(),
    };
    let mut store = Recovered::new();
    store.apply(Record::Client(client, Some(identity)));
    let engine = restarted(store);
    let system = as_user(Principal::SYSTEM);
    let elsewhere = Caller { origin: ELSEWHERE.origin, ..system };
    let come = |caller| come(&engine, (NOW, ClientProtocol::Setclientid), caller, (NAME, 2));
    assert_eq!(come(elsewhere).err(), Some(Error::ClidInuse));
    reclaim(&engine, &come(system).unwrap(), system).unwrap();
}
