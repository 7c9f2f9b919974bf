//! An export comes from a server that has failed: its clients reclaim there, and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, Caller, Claim, Client, ClientProtocol, EndingGrace, Engine, Error, HostLock,
    Identity, LockRequestKind, LockType, Open, OriginChannel, Record, RecordedClient, Recovered,
    Result,
};

use crate::people::{
    NAME, NEIGHBOUR, NOW, PLAIN, SECOND, STRANGER, VICTIM, arrive, client_41, engine, file, owner,
};

/// The number of the export that comes, and that of an export which was there before.
const COME: u32 = 2;
const OLD: u32 = 1;

fn recorded(name: &str) -> RecordedClient {
    let (protocol, channel) = (ClientProtocol::ExchangeId, OriginChannel::Plain);
    RecordedClient { protocol, channel, id: name.as_bytes().into() }
}

/// Begins the grace period with records of the victim and of clients of these names.
fn begin(engine: &Engine, others: &[&str]) {
    begin_at(engine, NOW, others);
}

fn begin_at(engine: &Engine, now: Duration, others: &[&str]) {
    let Caller { principal, origin } = VICTIM;
    let identity = Identity { principal, origin, verifier: owner(NAME, 1).verifier };
    let mut records = Recovered::new();
    for name in others.iter().chain([&NAME]) {
        records.apply(Record::Client(recorded(name), Some(identity)));
    }
    assert!(engine.begin_export_grace(now, COME, records));
}

/// The victim, which is new at this server.
fn come(engine: &Engine) -> Arc<Client> {
    let session = arrive(engine, NOW, VICTIM, (NAME, 1)).unwrap();
    Arc::clone(engine.session(&session).unwrap().client())
}

/// Opens a file of an export.
fn open(
    engine: &Engine,
    (now, export): (Duration, u32),
    (client, caller): (&Arc<Client>, Caller),
    claim: Claim,
) -> Result<()> {
    let of_export = comity_state::FileKey { export, ..file(export as u8) };
    let open = Open {
        client,
        caller,
        owner: b"o",
        file: of_export,
        share: PLAIN.share,
        claim,
        wish: PLAIN.delegation,
        user: None,
        grantee: None,
        empties: false,
    };
    engine.open(now, &open).map(drop)
}

const RECLAIM: Claim = Claim::Previous(None);

#[test]
fn clients_reclaim_in_the_export_that_came_while_others_go_on_elsewhere() {
    let engine = engine();
    let (other, _) = client_41(&engine, STRANGER, "other");
    begin(&engine, &[]);
    assert!(!engine.is_in_grace() && engine.is_in_grace_at(COME) && !engine.is_in_grace_at(OLD));
    let other = (&other, STRANGER);
    assert_eq!(open(&engine, (NOW, OLD), other, Claim::New), Ok(()));
    assert_eq!(open(&engine, (NOW, COME), other, Claim::New), Err(Error::Grace));
    assert_eq!(open(&engine, (NOW, COME), other, RECLAIM), Err(Error::ReclaimBad));
    let victim = come(&engine);
    assert_eq!(open(&engine, (NOW, OLD), (&victim, VICTIM), RECLAIM), Err(Error::NoGrace));
    assert_eq!(open(&engine, (NOW, COME), (&victim, VICTIM), RECLAIM), Ok(()));
    assert!(engine.awaits_opens(COME) && !engine.awaits_opens(OLD));
}

#[test]
fn the_grace_period_is_due_when_all_have_completed() {
    for is_of_one in [false, true] {
        let engine = engine();
        begin(&engine, &["second"]);
        let victim = come(&engine);
        match is_of_one {
            true => engine.reclaim_complete_at((Some(COME), &victim), VICTIM).unwrap(),
            false => engine.reclaim_complete(NOW, &victim, VICTIM).unwrap(),
        }
        assert_eq!(open(&engine, (NOW, COME), (&victim, VICTIM), RECLAIM), Err(Error::NoGrace));
        assert_eq!(engine.due_export_graces(NOW), [], "the second client may reclaim");
        client_41(&engine, VICTIM, "second");
        assert_eq!(engine.due_export_graces(NOW), [EndingGrace { export: COME, lost: Vec::new() }]);
    }
}

#[test]
fn a_client_that_has_completed_before_reclaims_in_the_export_that_came() {
    let engine = engine();
    let (victim, _) = client_41(&engine, VICTIM, NAME);
    begin(&engine, &[]);
    assert_eq!(open(&engine, (NOW, COME), (&victim, VICTIM), RECLAIM), Ok(()));
    let wrong = engine.reclaim_complete_at((Some(COME), &victim), NEIGHBOUR);
    assert_eq!(wrong, Err(Error::WrongCred));
    engine.reclaim_complete_at((Some(COME), &victim), VICTIM).unwrap();
    assert_eq!(engine.due_export_graces(NOW).len(), 1);
}

/// Linux answers the restart of a server with RECLAIM_COMPLETE for all file systems.
#[test]
fn a_client_that_has_completed_before_completes_in_the_export_that_came() {
    let engine = engine();
    let (victim, _) = client_41(&engine, VICTIM, NAME);
    begin(&engine, &[]);
    assert_eq!(engine.reclaim_complete(NOW, &victim, VICTIM), Err(Error::CompleteAlready));
    let ended = [EndingGrace { export: COME, lost: Vec::new() }];
    assert_eq!(engine.due_export_graces(NOW), ended);
}

/// A client that came to two heads at two addresses completes at each of them.
#[test]
fn a_client_may_reclaim_by_one_address_after_it_has_completed_at_another() {
    let engine = engine();
    begin(&engine, &[]);
    let client = come(&engine);
    let complete =
        |at: u32| engine.reclaim_complete_where(NOW, (&client, VICTIM), |export| export == at);
    complete(OLD).unwrap();
    assert_eq!(engine.due_export_graces(NOW), [], "the client has not completed here");
    open(&engine, (NOW, COME), (&client, VICTIM), Claim::Previous(None)).unwrap();
    assert_eq!(complete(COME), Err(Error::CompleteAlready));
    let ended = [EndingGrace { export: COME, lost: Vec::new() }];
    assert_eq!(engine.due_export_graces(NOW), ended);
}

#[test]
fn a_client_that_uses_another_address_only_is_awaited_for_half_of_the_grace_period() {
    let engine = engine();
    begin(&engine, &[]);
    let client = come(&engine);
    engine.reclaim_complete_where(NOW, (&client, VICTIM), |_| false).unwrap();
    let half = NOW + engine.settings().grace / 2;
    assert_eq!(engine.due_export_graces(half - Duration::from_secs(1)), []);
    let ended = [EndingGrace { export: COME, lost: Vec::new() }];
    assert_eq!(engine.due_export_graces(half), ended);
}

#[test]
fn a_known_host_that_reclaims_has_returned() {
    let engine = engine();
    let host = engine.host(NOW, b"192.0.2.1", VICTIM.origin).unwrap();
    let (protocol, channel) = (ClientProtocol::Nlm, OriginChannel::Plain);
    let record = RecordedClient { protocol, channel, id: b"192.0.2.1"[..].into() };
    let records = || {
        let mut records = Recovered::new();
        records.apply(Record::Client(record.clone(), None));
        records
    };
    let due = NOW + engine.settings().grace;
    assert!(engine.begin_export_grace(NOW, COME, records()));
    let lost = vec![record.clone()];
    assert_eq!(engine.due_export_graces(due), [EndingGrace { export: COME, lost }]);
    assert!(engine.begin_export_grace(NOW, COME, records()));
    let locked = comity_state::FileKey { export: COME, ..file(2) };
    let range = ByteRange::new(0, 1).unwrap();
    let lock = HostLock { owner: b"o", file: locked, range, kind: LockType::Write };
    engine.lock_host(NOW, &host, &lock, LockRequestKind::Reclaim).unwrap();
    let later = due + engine.settings().grace;
    let ended = [EndingGrace { export: COME, lost: Vec::new() }];
    assert_eq!(engine.due_export_graces(later), ended);
}

#[test]
fn a_client_that_expires_here_may_reclaim_in_the_export_that_came() {
    for is_evicted in [false, true] {
        let engine = engine();
        let (victim, _) = client_41(&engine, VICTIM, NAME);
        let late = NOW + engine.settings().lease * 2;
        begin_at(&engine, late, &[]);
        match is_evicted {
            true => engine.evict(late, &victim),
            false => engine.tick(late),
        }
        assert!(engine.client_by_id(victim.id()).is_none(), "a client without state goes at once");
        let again = arrive(&engine, late, VICTIM, (NAME, 1)).unwrap();
        let again = Arc::clone(engine.session(&again).unwrap().client());
        let expected = if is_evicted { Err(Error::ReclaimBad) } else { Ok(()) };
        assert_eq!(open(&engine, (late, COME), (&again, VICTIM), RECLAIM), expected);
    }
}

/// The shell must store who has lost the right to reclaim before others get anything.
#[test]
fn nothing_is_reclaimed_or_granted_between_the_due_time_and_the_end() {
    let engine = engine();
    let (other, _) = client_41(&engine, STRANGER, "other");
    begin(&engine, &[]);
    let victim = come(&engine);
    let due = NOW + engine.settings().grace;
    assert_eq!(engine.due_export_graces(due - SECOND), []);
    assert_eq!(engine.export_graces(due - SECOND), [(COME, SECOND)]);
    for _ in ["the first time", "after the storing has failed"] {
        let lost = vec![recorded(NAME)];
        assert_eq!(engine.due_export_graces(due), [EndingGrace { export: COME, lost }]);
        assert_eq!(open(&engine, (due, COME), (&victim, VICTIM), RECLAIM), Err(Error::NoGrace));
        assert_eq!(open(&engine, (due, COME), (&other, STRANGER), Claim::New), Err(Error::Grace));
    }
    engine.end_export_grace(COME);
    assert!(!engine.has_export_graces());
    assert_eq!(open(&engine, (due, COME), (&other, STRANGER), Claim::New), Ok(()));
    assert_eq!(open(&engine, (due, COME), (&victim, VICTIM), RECLAIM), Err(Error::NoGrace));
}

#[test]
fn the_name_of_a_client_that_may_reclaim_belongs_to_it() {
    let engine = engine();
    begin(&engine, &[]);
    assert_eq!(arrive(&engine, NOW, STRANGER, (NAME, 1)), Err(Error::ClidInuse));
    come(&engine);
}

#[test]
fn an_export_without_clients_has_no_grace_period() {
    let engine = engine();
    assert!(!engine.begin_export_grace(NOW, COME, Recovered::new()));
    assert!(!engine.is_in_grace_at(COME));
}
