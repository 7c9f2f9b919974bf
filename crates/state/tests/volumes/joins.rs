//! State comes to an engine that its client uses for other volumes, too.

use std::sync::Arc;

use comity_state::{
    ByteRange, Client, Delegation, DelegationWish, Effect, Engine, Error, ExchangeId, FileKey,
    ImportRefusal, Record, Recovered, Sender, Share, Stateid,
};

use crate::introduction::session_of;
use crate::moves::move_volume;
use crate::returns::{leave, revoke};
use crate::site::{
    ATTRS, ELSEWHERE, NOW, VOLUME, caller, client, engine, engine_with, file, lock, open, opened,
    owner,
};

/// An open, a lock under it, and a write delegation of another file.
struct Held {
    open: Stateid,
    lock: Stateid,
    delegation: Stateid,
}

fn hold(engine: &Engine, client: &Arc<Client>) -> Held {
    let open = opened(engine, client, file(VOLUME, 1));
    let lock = lock(engine, client, (file(VOLUME, 1), open)).unwrap();
    let wanted = (file(VOLUME, 2), Share::BOTH);
    let opened = self::open(engine, client, wanted, DelegationWish::Write).unwrap();
    let Delegation::Granted { stateid, .. } = opened.delegation else { panic!("none granted") };
    Held { open, lock, delegation: stateid }
}

fn are_good(engine: &Engine, client: &Arc<Client>, stateids: &[Stateid]) -> bool {
    let sender = Sender::of(NOW, client);
    stateids.iter().all(|stateid| engine.test_stateid(sender, stateid) == Ok(()))
}

#[test]
fn a_client_of_both_engines_goes_on_with_the_stateids_of_both() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let (here, session) = client(&to, "a");
    assert_ne!(a.id(), here.id());
    let elsewhere = opened(&to, &here, file(ELSEWHERE, 9));
    let Held { open, lock, delegation } = hold(&from, &a);
    leave(&from, &to);
    assert_eq!((to.census().clients, here.sessions()), (1, vec![session]));
    assert!(are_good(&to, &here, &[open, lock, delegation, elsewhere]));
    let (sender, wanted) = (Sender::of(NOW, &here), file(VOLUME, 1));
    let again = opened(&to, &here, wanted);
    assert_eq!((again.other, again.seqid), (open.other, open.seqid + 1), "the same open");
    let unlocked = to.unlock(sender, &lock, (&wanted, ByteRange::ALL)).unwrap();
    assert_eq!((unlocked.other, unlocked.seqid), (lock.other, lock.seqid + 1));
    to.delegreturn((sender, &file(VOLUME, 2)), &delegation).unwrap();
    to.close((sender, &wanted), &again).unwrap();
    for gone in [again, unlocked, delegation] {
        assert_eq!(to.test_stateid(sender, &gone), Err(Error::BadStateid));
    }
    assert!(are_good(&to, &here, &[elsewhere]));
}

#[test]
fn state_of_a_client_of_both_engines_comes_back_and_goes_again() {
    let (home, away) = (engine(1), engine(2));
    let (a, _) = client(&home, "a");
    let (there, _) = client(&away, "a");
    let others = [(&home, &a), (&away, &there)].map(|(engine, client)| {
        let stateids = [7, 8].map(|number| opened(engine, client, file(ELSEWHERE, number)));
        (engine, client, stateids)
    });
    let Held { open, lock, delegation } = hold(&home, &a);
    leave(&home, &away);
    let mut moved = vec![open, lock, delegation, opened(&away, &there, file(VOLUME, 3))];
    for _ in 0..2 {
        leave(&away, &home);
        moved.push(opened(&home, &a, file(VOLUME, moved.len() as u8)));
        assert!(are_good(&home, &a, &moved));
        leave(&home, &away);
        moved.push(opened(&away, &there, file(VOLUME, moved.len() as u8)));
        assert!(are_good(&away, &there, &moved));
        assert!(others.iter().all(|(engine, client, ids)| are_good(engine, client, ids)));
    }
    let sender = Sender::of(NOW, &there);
    away.unlock(sender, &lock, (&file(VOLUME, 1), ByteRange::ALL)).unwrap();
    away.close((sender, &file(VOLUME, 1)), &open).unwrap();
}

#[test]
fn a_waiting_owner_of_a_client_of_both_engines_gets_its_lock() {
    let (from, to) = (engine(1), engine(2));
    let names = ["a", "b"];
    let [(a, _), (b, _)] = names.map(|name| client(&from, name));
    let [(a_here, _), (b_here, _)] = names.map(|name| client(&to, name));
    // The lock-owners get other numbers there.
    for client in [&a_here, &b_here] {
        opened(&to, client, file(ELSEWHERE, 1));
    }
    let wanted = file(VOLUME, 1);
    let opens = [&a, &b].map(|client| opened(&from, client, wanted));
    let held = lock(&from, &a, (wanted, opens[0])).unwrap();
    assert!(lock(&from, &b, (wanted, opens[1])).is_err(), "it waits");
    leave(&from, &to);
    assert_eq!(to.census().clients, 2);
    while to.poll_effect().is_some() {}
    to.unlock(Sender::of(NOW, &a_here), &held, (&wanted, ByteRange::ALL)).unwrap();
    let Some(Effect::NotifyLock { client: next, .. }) = to.poll_effect() else { panic!("none") };
    assert!(Arc::ptr_eq(&next, &b_here));
    assert!(lock(&to, &a_here, (wanted, opens[0])).is_err(), "it is offered to the other");
    lock(&to, &b_here, (wanted, opens[1])).unwrap();
}

#[test]
fn a_delegation_of_a_client_of_both_engines_is_recalled_by_its_stateid() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let (here, _) = client(&to, "a");
    let (x, _) = client(&to, "x");
    opened(&to, &here, file(ELSEWHERE, 9));
    let held = hold(&from, &a);
    leave(&from, &to);
    while to.poll_effect().is_some() {}
    assert!(open(&to, &x, (file(VOLUME, 2), Share::READ), DelegationWish::None).is_err());
    let Some(Effect::Recall { client, stateid, .. }) = to.poll_effect() else { panic!("none") };
    assert!(Arc::ptr_eq(&client, &here));
    assert_eq!(stateid, held.delegation);
    let sent = || to.totals().recalls_sent;
    let before = sent();
    to.recall_sent(NOW, &here, &stateid);
    assert_eq!(sent(), before + 1);
    to.delegreturn((Sender::of(NOW, &here), &file(VOLUME, 2)), &stateid).unwrap();
    open(&to, &x, (file(VOLUME, 2), Share::READ), DelegationWish::None).unwrap();
}

/// Anybody may present the name of a client to another server before the client comes there.
#[test]
fn a_client_of_the_same_name_at_another_address_gets_no_state() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let args = ExchangeId { owner: owner("a"), caller: caller(b'z'), update: false };
    let known = to.exchange_id(NOW, args).unwrap();
    to.create_session(NOW, &session_of(&known, (caller(b'z'), 1), ATTRS)).unwrap();
    hold(&from, &a);
    let volume = from.export_volume(NOW, VOLUME).unwrap();
    let refused = to.import_volume(NOW, &volume).map(drop);
    assert_eq!(refused, Err(ImportRefusal::Client(a.id(), Error::ClidInuse)));
    assert_eq!((to.census().states, to.census().clients), (0, 1));
}

#[test]
fn an_owner_of_another_principal_is_not_the_same_owner() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let (here, _) = client(&to, "a");
    opened(&to, &here, file(ELSEWHERE, 9));
    hold(&from, &a);
    let mut volume = from.export_volume(NOW, VOLUME).unwrap();
    volume.clients[0].owners[0].principal = comity_state::Principal(7);
    let known = to.census();
    let refused = to.import_volume(NOW, &volume).map(drop);
    assert_eq!(refused, Err(ImportRefusal::Client(a.id(), Error::ClidInuse)));
    assert_eq!(to.census(), known);
}

#[test]
fn a_client_of_both_engines_has_no_more_states_and_owners_than_it_may() {
    // It has one open here and four states there, of an open-owner that is known here and of a
    // lock-owner that is not.
    for (states, owners, fits) in [(5, 2, true), (4, 2, false), (5, 1, false)] {
        let (from, to) = (
            engine(1),
            engine_with(2, |it| {
                (it.limits.states_per_client, it.limits.owners_per_client) = (states, owners);
            }),
        );
        let (a, _) = client(&from, "a");
        let (here, _) = client(&to, "a");
        opened(&to, &here, file(ELSEWHERE, 9));
        hold(&from, &a);
        let volume = from.export_volume(NOW, VOLUME).unwrap();
        let known = to.census();
        let refused = to.import_volume(NOW, &volume).map(drop);
        assert_eq!(refused.is_ok(), fits, "{states} states and {owners} owners");
        assert!(fits || to.census() == known);
    }
}

#[test]
fn an_import_that_fails_leaves_a_client_of_both_engines_as_it_was() {
    let (from, to) = (engine(1), engine(2));
    let [(a, _), (b, _)] = ["a", "b"].map(|name| client(&from, name));
    let (here, session) = client(&to, "a");
    let elsewhere = opened(&to, &here, file(ELSEWHERE, 9));
    let held = hold(&from, &a);
    opened(&from, &b, file(VOLUME, 4));
    let (x, _) = client(&to, "x");
    open(&to, &x, (file(VOLUME, 4), Share::BOTH), DelegationWish::Write).unwrap();
    let mut volume = from.export_volume(NOW, VOLUME).unwrap();
    volume.clients.sort_by_key(|client| client.name.id.clone());
    let known = to.census();
    let refused = to.import_volume(NOW, &volume).map(drop);
    assert_eq!(refused, Err(ImportRefusal::Client(b.id(), Error::ReclaimConflict)));
    assert_eq!((to.census(), here.sessions()), (known, vec![session]));
    assert!(are_good(&to, &here, &[elsewhere]));
    let sender = Sender::of(NOW, &here);
    assert_eq!(to.test_stateid(sender, &held.open), Err(Error::BadStateid));
    to.evict(NOW, &x);
    to.import_volume(NOW, &volume).unwrap();
    assert!(are_good(&to, &here, &[elsewhere, held.open, held.lock, held.delegation]));
}

/// The record of a client forgets what was revoked: it stands for a new instance, too.
#[test]
fn a_revocation_here_stays_recorded_when_more_state_comes() {
    let (from, to) = (engine(1), engine_with(2, |it| it.durable = true));
    let (a, _) = client(&from, "a");
    let (here, _) = client(&to, "a");
    revoke(&to, &here);
    hold(&from, &a);
    leave(&from, &to);
    let mut records = Vec::new();
    to.poll_records(&mut records);
    let mut recovered = Recovered::new();
    records.into_iter().for_each(|record| recovered.apply(record));
    let revoked = recovered.records().filter(|it| matches!(it, Record::Revoked(_, _)));
    let files: Vec<FileKey> = revoked
        .filter_map(|it| if let Record::Revoked(_, file) = it { Some(file) } else { None })
        .collect();
    assert_eq!(files, [file(ELSEWHERE, 3)]);
}

/// The first engine serves other volumes until it has forgotten the one that moves.
#[test]
fn engines_give_different_stateids_before_the_first_one_forgets() {
    let (home, away) = (engine(1), engine(2));
    let (a, _) = client(&home, "a");
    opened(&home, &a, file(VOLUME, 1));
    move_volume(&home, &away);
    let there = away.client_by_id(a.id()).unwrap();
    let here = opened(&home, &a, file(ELSEWHERE, 1));
    let new = opened(&away, &there, file(VOLUME, 2));
    assert_ne!(here.other, new.other);
    home.forget_volume(NOW, VOLUME, &[1]);
    leave(&away, &home);
    assert!(are_good(&home, &a, &[here, new]));
}

#[test]
fn a_client_that_introduces_itself_while_its_state_comes_does_not_lose_it() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let held = hold(&from, &a);
    let args = || ExchangeId { owner: owner("a"), caller: caller(b'a'), update: false };
    let early = to.exchange_id(NOW, args()).unwrap();
    leave(&from, &to);
    let refused = to.create_session(NOW, &session_of(&early, (caller(b'a'), 1), ATTRS));
    assert_eq!(refused.err(), Some(Error::StaleClientid));
    let found = to.exchange_id(NOW, args()).unwrap();
    assert!(found.confirmed);
    assert_eq!(found.clientid, a.id());
    to.create_session(NOW, &session_of(&found, (caller(b'a'), 1), ATTRS)).unwrap();
    let here = to.client_by_id(a.id()).unwrap();
    assert!(are_good(&to, &here, &[held.open, held.lock, held.delegation]));
}

#[test]
fn a_target_that_is_full_takes_state_of_clients_that_it_knows() {
    let (from, to) = (engine(1), engine_with(2, |it| it.limits.clients = 1));
    let (a, _) = client(&from, "a");
    client(&to, "a");
    hold(&from, &a);
    leave(&from, &to);
    assert_eq!(to.census().clients, 1);
}
