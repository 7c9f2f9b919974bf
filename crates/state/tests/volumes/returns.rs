//! A volume comes back to an engine that still knows its clients.

use std::sync::Arc;

use comity_state::{
    BeginOffload, ByteRange, Client, ClientOwner, ConnectionId, DelegationWish, Engine, Error,
    ExchangeId, ExportedVolume, ImportRefusal, LockRequestKind, Principal, Sender, SeqidCheck,
    Sequence, SequenceAnswer, Sequenced, SessionId, Share, Stateid, StatusFlags, Verifier,
};

use crate::introduction::session_of;
use crate::moves::move_volume;
use crate::refusals::request;
use crate::site::{
    ELSEWHERE, NOW, VOLUME, caller, client, engine, engine_with, file, host_lock, lock, old_client,
    open, opened, owner, sample,
};

/// Moves the volume, which the first engine forgets.
pub(super) fn leave(from: &Engine, to: &Engine) -> ExportedVolume {
    let volume = move_volume(from, to);
    from.forget_volume(NOW, VOLUME, &[1]);
    volume
}

/// Sends the `seqid`-th request over a session; returns the status flags.
fn sent(engine: &Engine, session: SessionId, seqid: u32) -> StatusFlags {
    let request = Sequence { seqid, digest: seqid.into(), ..request(session) };
    let Ok(Sequenced::New(ticket)) = engine.sequence(NOW, &request) else { panic!("not new") };
    let flags = ticket.answer().status;
    ticket.answered(Some(b""));
    flags
}

/// A client finds itself at an engine to which it was moved, and makes a session there.
fn arrive(engine: &Engine, client: &Client) -> SessionId {
    let name = ClientOwner { verifier: Verifier([1; 8]), id: client.owner().into() };
    let args = ExchangeId { owner: name, caller: client.caller(), update: false };
    let found = engine.exchange_id(NOW, args).unwrap();
    assert!(found.confirmed);
    assert_eq!(found.clientid, client.id());
    let fore = comity_state::ChannelAttrs {
        request_bytes_max: 4096,
        response_bytes_max: 4096,
        response_cached_bytes_max: 1024,
        operations_max: 8,
        requests_max: 2,
    };
    let made = engine.create_session(NOW, &session_of(&found, (client.caller(), 7), fore));
    made.unwrap().session
}

fn test(engine: &Engine, client: &Client, stateid: &Stateid) -> Result<(), Error> {
    let here = engine.client_by_id(client.id()).unwrap();
    engine.test_stateid(Sender::of(NOW, &here), stateid)
}

#[test]
fn a_client_that_follows_its_volume_is_confirmed_there_and_goes_on_with_a_new_session() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let wanted = file(VOLUME, 1);
    let open = opened(&from, &a, wanted);
    let held = lock(&from, &a, (wanted, open)).unwrap();
    // Its next sequenceid is not that of a new client.
    arrive(&from, &a);
    leave(&from, &to);
    let session = arrive(&to, &a);
    assert_eq!(sent(&to, session, 1).0 & StatusFlags::LEASE_MOVED.0, 0);
    let here = Arc::clone(to.session(&session).unwrap().client());
    to.unlock(Sender::of(NOW, &here), &held, (&wanted, ByteRange::ALL)).unwrap();
    to.close((Sender::of(NOW, &here), &wanted), &open).unwrap();
}

#[test]
fn a_client_returns_with_its_volume_and_keeps_its_sessions_at_both_engines() {
    let (home, away) = (engine(1), engine(2));
    let (a, first) = client(&home, "a");
    let wanted = file(VOLUME, 1);
    let open = opened(&home, &a, wanted);
    sent(&home, first, 1);
    leave(&home, &away);
    assert_ne!(sent(&home, first, 2).0 & StatusFlags::LEASE_MOVED.0, 0);
    let second = arrive(&away, &a);
    let there = away.client_by_id(a.id()).unwrap();
    let held = lock(&away, &there, (wanted, open)).unwrap();
    leave(&away, &home);
    assert!(Arc::ptr_eq(&home.client_by_id(a.id()).unwrap(), &a), "it is the same record");
    assert_eq!(a.sessions(), [first, second]);
    assert_eq!(sent(&home, first, 3).0 & StatusFlags::LEASE_MOVED.0, 0);
    sent(&home, second, 1);
    home.unlock(Sender::of(NOW, &a), &held, (&wanted, ByteRange::ALL)).unwrap();
    home.close((Sender::of(NOW, &a), &wanted), &open).unwrap();
    let third = arrive(&home, &a);
    assert!(![first, second].contains(&third));
}

#[test]
fn state_of_every_kind_comes_back() {
    let (home, away) = (sample(), engine(2));
    let known = home.census();
    let granted = home.grantee_clients().len();
    let before = leave(&home, &away);
    let session = before.clients[0].sessions[0].id;
    let revoked = |seqid| sent(&home, session, seqid).0 & 0x40 != 0;
    assert!(!revoked(1) && home.grantee_clients().is_empty() && granted > 0);
    leave(&away, &home);
    assert_eq!(home.census(), known);
    assert!(revoked(2) && home.grantee_clients().len() == granted);
    assert!(home.has_delegations());
    let mut after = home.export_volume(NOW, VOLUME).unwrap();
    for (client, before) in after.clients.iter_mut().zip(&before.clients) {
        client.given_out = before.given_out;
        client.told = before.told;
        client.sessions.clone_from(&before.sessions);
    }
    assert_eq!(after, before);
    leave(&home, &away);
    assert_eq!((home.census().states, home.census().files), (0, 0));
}

/// The engine gives other numbers while another one goes on with those of the client.
#[test]
fn a_client_with_other_state_here_returns() {
    for kind in 0..3 {
        let (home, away) = (engine(1), engine(2));
        let (a, session) = client(&home, "a");
        let open = opened(&home, &a, file(VOLUME, 1));
        leave(&home, &away);
        let there = away.client_by_id(a.id()).unwrap();
        let new = opened(&away, &there, file(VOLUME, 2));
        match kind {
            0 => drop(opened(&home, &a, file(ELSEWHERE, 1))),
            1 => copy(&home, (&a, session), ELSEWHERE),
            _ => revoke(&home, &a),
        }
        let known = home.census().states;
        leave(&away, &home);
        assert_eq!((home.census().states, a.sessions()), (known + 2, vec![session]), "{kind}");
        assert!([open, new].iter().all(|stateid| test(&home, &a, stateid) == Ok(())), "{kind}");
        assert!(!a.has_moved_lease());
    }
}

#[test]
fn a_client_does_not_return_with_the_stateid_of_another_state_here() {
    let (home, away) = (engine(1), engine(2));
    let (a, session) = client(&home, "a");
    opened(&home, &a, file(VOLUME, 1));
    leave(&home, &away);
    let other = opened(&home, &a, file(ELSEWHERE, 1)).other;
    let mut volume = away.export_volume(NOW, VOLUME).unwrap();
    volume.clients[0].states[0].number = u32::from_be_bytes(other[8..].try_into().unwrap());
    let known = home.census();
    let refused = home.import_volume(NOW, &volume).map(drop);
    assert_eq!(refused, Err(ImportRefusal::Client(a.id(), Error::ClidInuse)));
    assert_eq!((home.census(), a.sessions()), (known, vec![session]));
    assert!(a.has_moved_lease(), "the volume is still away");
}

/// Owners of minor version 0 have seqids.
#[test]
fn a_client_of_minor_version_0_with_state_here_does_not_return() {
    let (home, away) = (engine(1), engine(2));
    let old = old_client(&home, "c");
    opened(&home, &old, file(VOLUME, 1));
    leave(&home, &away);
    opened(&home, &old, file(ELSEWHERE, 1));
    let volume = away.export_volume(NOW, VOLUME).unwrap();
    let known = home.census();
    let refused = home.import_volume(NOW, &volume).map(drop);
    assert_eq!(refused, Err(ImportRefusal::Client(old.id(), Error::ClidInuse)));
    assert_eq!(home.census(), known);
}

pub(super) fn copy(engine: &Engine, (client, session): (&Client, SessionId), volume: u64) {
    let status = StatusFlags::default();
    let (seqid, slot, highest_slot, target_highest_slot) = (1, 0, 0, 0);
    let asked_by =
        SequenceAnswer { session, seqid, slot, highest_slot, target_highest_slot, status };
    let wanted = BeginOffload { file: file(volume, 2), principal: Principal(0), asked_by };
    engine.begin_offload(NOW, client, wanted).unwrap();
}

pub(super) fn revoke(engine: &Engine, client: &Arc<Client>) {
    let wanted = file(ELSEWHERE, 3);
    open(engine, client, (wanted, Share::BOTH), DelegationWish::Write).unwrap();
    let (before, write) = (NOW - engine.settings().lease * 3, Share::access(Share::WRITE));
    assert!(engine.break_delegations(before, None, &wanted, write).is_err());
    engine.tick(NOW);
    let open = opened(engine, client, wanted);
    engine.close((Sender::of(NOW, client), &wanted), &open).unwrap();
}

#[test]
fn a_client_does_not_return_as_another_instance_or_another_principal() {
    let (home, away) = (engine(1), engine(2));
    let (a, _) = client(&home, "a");
    opened(&home, &a, file(VOLUME, 1));
    leave(&home, &away);
    let volume = away.export_volume(NOW, VOLUME).unwrap();
    let changes: [fn(&mut ExportedVolume); 2] = [
        |it| it.clients[0].name.verifier = Verifier([2; 8]),
        |it| it.clients[0].introduced_by.principal = Principal(7),
    ];
    for change in changes {
        let mut other = volume.clone();
        change(&mut other);
        let refused = home.import_volume(NOW, &other).map(drop);
        assert_eq!(refused, Err(ImportRefusal::Client(a.id(), Error::ClidInuse)));
    }
    home.import_volume(NOW, &volume).unwrap();
}

#[test]
fn an_import_that_fails_leaves_clients_that_would_have_returned_as_they_were() {
    let (home, away) = (engine(1), engine(2));
    let [(a, session), (b, _)] = ["a", "b"].map(|name| client(&home, name));
    let old = old_client(&home, "c");
    let moved = file(VOLUME, 1);
    let opens = [&a, &b, &old].map(|client| opened(&home, client, moved));
    lock(&home, &a, (moved, opens[0])).unwrap();
    opened(&home, &b, file(VOLUME, 2));
    leave(&home, &away);
    arrive(&away, &a);
    opened(&away, &away.client_by_id(a.id()).unwrap(), file(VOLUME, 3));
    // An owner of the same name has closed a file here, and may repeat that.
    let turn = |seqid| home.open_turn((NOW, old.caller()), &old, b"opener", seqid);
    let Ok(SeqidCheck::New(first)) = turn(1) else { panic!("not new") };
    let elsewhere = file(ELSEWHERE, 1);
    let stateid = opened(&home, &old, elsewhere);
    first.answered(b"opened", None);
    let shown = (Sender::of(NOW, &old), &elsewhere);
    let stateid = home.open_confirm(shown, &stateid).unwrap();
    let Ok(SeqidCheck::New(second)) = turn(2) else { panic!("not new") };
    home.close(shown, &stateid).unwrap();
    second.answered(b"closed", None);
    // The last client meets a conflict.
    let mut volume = away.export_volume(NOW, VOLUME).unwrap();
    volume.clients.sort_by_key(|client| client.name.id.clone());
    volume.clients.swap(1, 2);
    let (x, _) = client(&home, "x");
    open(&home, &x, (file(VOLUME, 2), Share::BOTH), DelegationWish::Write).unwrap();
    let known = home.census();
    let numbers = |engine: &Engine| {
        let last = engine.export_client(NOW, &a).unwrap();
        (last.sessions_made, last.create_sequenceid, last.silent)
    };
    let before = numbers(&home);
    while home.poll_effect().is_some() {}
    let refused = home.import_volume(NOW, &volume).map(drop);
    assert_eq!(refused, Err(ImportRefusal::Client(b.id(), Error::ReclaimConflict)));
    assert_eq!((home.census(), numbers(&home)), (known, before));
    assert_eq!(a.sessions(), [session]);
    assert_ne!(sent(&home, session, 1).0 & StatusFlags::LEASE_MOVED.0, 0);
    let Ok(SeqidCheck::Again(reply)) = turn(2) else { panic!("done twice") };
    assert_eq!(&*reply.result, b"closed");
    assert!(!home.has_effects());
    home.evict(NOW, &x);
    home.import_volume(NOW, &volume).unwrap();
    assert!(
        [(&a, &opens[0]), (&b, &opens[1]), (&old, &opens[2])].iter().all(|(client, open)| test(
            &home, client, open
        ) == Ok(
            ()
        ))
    );
}

#[test]
fn a_client_with_an_expired_lease_returns_and_its_state_here_gives_way() {
    for has_state in [false, true] {
        let (home, away) = (engine(1), engine(2));
        let (a, _) = client(&home, "a");
        let open = opened(&home, &a, file(VOLUME, 1));
        leave(&home, &away);
        if has_state {
            opened(&home, &a, file(ELSEWHERE, 1));
        }
        let later = NOW + home.settings().lease;
        let there = away.client_by_id(a.id()).unwrap();
        let session = away.client_by_id(a.id()).unwrap().sessions()[0];
        let request = Sequence { seqid: 1, ..request(session) };
        let Ok(Sequenced::New(ticket)) = away.sequence(later, &request) else { panic!("not new") };
        ticket.answered(Some(b""));
        assert_eq!(there.renewed(), later);
        let volume = away.export_volume(later, VOLUME).unwrap();
        home.import_volume(later, &volume).unwrap();
        let here = home.client_by_id(a.id()).unwrap();
        assert_eq!(Arc::ptr_eq(&here, &a), !has_state);
        assert_eq!(here.renewed(), later, "the lease was renewed at the other engine");
        assert_eq!(home.test_stateid(Sender::of(later, &here), &open), Ok(()));
        assert_eq!((home.census().states, home.census().sessions), (1, 1));
        home.tick(later);
        assert!(home.client_by_id(a.id()).is_some());
    }
}

#[test]
fn a_client_that_returns_has_no_more_sessions_than_it_may() {
    let limited = |number| engine_with(number, |it| it.limits.sessions_per_client = 3);
    let (home, away) = (limited(1), limited(2));
    let (a, first) = client(&home, "a");
    opened(&home, &a, file(VOLUME, 1));
    leave(&home, &away);
    let there = [(); 2].map(|()| arrive(&away, &a));
    let here = arrive(&home, &a);
    leave(&away, &home);
    assert_eq!(a.sessions(), [first, here, there[1]], "the newest is kept");
    assert_eq!(home.census().sessions, 3);
    assert!(home.session(&there[0]).is_none());
}

#[test]
fn a_new_state_gets_a_number_that_neither_engine_has_given_out() {
    for ahead in [true, false] {
        let (home, away) = (engine(1), engine(2));
        let (a, _) = client(&home, "a");
        opened(&home, &a, file(VOLUME, 1));
        leave(&home, &away);
        let mut ended = Vec::new();
        let mut use_up = |engine: &Engine, volume| {
            let client = engine.client_by_id(a.id()).unwrap();
            let wanted = file(volume, 9);
            let stateid = opened(engine, &client, wanted);
            engine.close((Sender::of(NOW, &client), &wanted), &stateid).unwrap();
            ended.push(stateid.other);
        };
        (0..if ahead { 5 } else { 1 }).for_each(|_| use_up(&home, ELSEWHERE));
        (0..3).for_each(|_| use_up(&away, VOLUME));
        leave(&away, &home);
        let new = opened(&home, &a, file(VOLUME, 2));
        assert!(!ended.contains(&new.other), "{ahead}");
    }
}

/// Heads of a cluster may have one secret.
#[test]
fn a_new_session_gets_a_sessionid_that_neither_engine_has_given_out() {
    let (home, away) = (engine(1), engine(1));
    let (a, _) = client(&home, "a");
    opened(&home, &a, file(VOLUME, 1));
    leave(&home, &away);
    let there = [(); 2].map(|()| arrive(&away, &a));
    leave(&away, &home);
    assert!(!there.contains(&arrive(&home, &a)));
    assert_eq!(home.census().sessions, 4);
}

#[test]
fn a_host_returns_with_its_locks() {
    let (home, away) = (engine(1), engine(2));
    let host = home.host(NOW, b"host", caller(9).origin).unwrap();
    home.lock_host(NOW, &host, &host_lock(1), LockRequestKind::NonBlocking).unwrap();
    leave(&home, &away);
    leave(&away, &home);
    assert_eq!((home.census().locks, home.census().clients), (1, 1));
    home.unlock_host(NOW, &host, &host_lock(1)).unwrap();
    assert_eq!(home.census().locks, 0);
}

/// A client of minor version 0 has a callback address at each server.
#[test]
fn a_client_that_returns_keeps_its_address_for_callbacks() {
    let (home, away) = (engine(1), engine(2));
    let old = old_client(&home, "c");
    let open = opened(&home, &old, file(VOLUME, 1));
    leave(&home, &away);
    let callback = comity_state::CallbackAddress { program: 9, ..Default::default() };
    let args = comity_state::Setclientid { owner: owner("c"), caller: old.caller(), callback };
    let made = away.setclientid(NOW, args).unwrap();
    assert_eq!(made.clientid, old.id());
    away.setclientid_confirm(NOW, (made.clientid, made.confirm), old.caller()).unwrap();
    assert_eq!(home.renew(NOW, old.id(), old.caller()), Err(Error::LeaseMoved));
    leave(&away, &home);
    assert_eq!(home.renew(NOW, old.id(), old.caller()), Ok(()));
    assert_eq!(old.callback_address().map(|it| it.program), Some(1));
    assert_eq!(test(&home, &old, &open), Ok(()));
}

#[test]
fn a_client_that_returns_takes_no_second_place() {
    let limited = |number| engine_with(number, |it| it.limits.clients = 1);
    let (home, away) = (limited(1), engine(2));
    let (a, session) = client(&home, "a");
    opened(&home, &a, file(VOLUME, 1));
    leave(&home, &away);
    leave(&away, &home);
    assert_eq!(home.census().clients, 1);
    home.destroy_session(&session, (ConnectionId(1), a.caller())).unwrap();
}
