use std::sync::Arc;

use comity_state::{
    CallbackAddress, Client, Delegation, DelegationWish, Effect, Engine, Error, ExportedKind,
    ExportedState, ExportedVolume, FileKey, LockRefusal, Sender, SeqidCheck, Setclientid, Share,
    Stateid,
};

use crate::introduction::session_of;
use crate::site::{
    ELSEWHERE, NOW, VOLUME, caller, client, engine, file, lock, old_client, open, opened, owner,
    sample,
};

/// Moves the volume by bytes.
pub(super) fn move_volume(from: &Engine, to: &Engine) -> ExportedVolume {
    let bytes = from.hand_over_volume(NOW, VOLUME).unwrap().to_bytes().unwrap();
    let volume = ExportedVolume::from_bytes(&bytes).unwrap();
    to.import_volume(NOW, &volume).unwrap();
    volume
}

#[test]
fn state_of_every_kind_is_the_same_after_it_was_sent_as_bytes() {
    let (from, to) = (sample(), engine(2));
    let sent = move_volume(&from, &to);
    let mut kept = from.export_volume(NOW, VOLUME).unwrap();
    for (client, before) in kept.clients.iter_mut().zip(&sent.clients) {
        assert_ne!(client.last_number, before.last_number, "both engines give the same numbers");
        client.last_number = before.last_number;
    }
    assert_eq!(sent, kept);
    let mut arrived = to.export_volume(NOW, VOLUME).unwrap();
    arrived.clients.sort_by_key(|client| client.id);
    let mut sent = sent;
    sent.clients.sort_by_key(|client| client.id);
    for (client, before) in arrived.clients.iter_mut().zip(&sent.clients) {
        client.given_out = before.given_out;
    }
    assert_eq!(arrived, sent);
}

#[test]
fn owners_get_their_locks_in_the_order_in_which_they_came_to_the_first_engine() {
    let (from, to) = (engine(1), engine(2));
    let wanted = file(VOLUME, 1);
    let people: Vec<_> = ["e", "a", "d", "b", "c"].map(|name| client(&from, name).0).into();
    let opens: Vec<_> = people.iter().map(|it| opened(&from, it, wanted)).collect();
    let pairs = || people.iter().zip(&opens);
    let held = lock(&from, &people[0], (wanted, opens[0])).unwrap();
    for (client, open) in pairs().skip(1) {
        assert!(lock(&from, client, (wanted, *open)).is_err(), "it waits");
    }
    move_volume(&from, &to);
    let mut held = held;
    for (at, (client, open)) in pairs().enumerate() {
        let here = to.client_by_id(client.id()).unwrap();
        if at > 0 {
            let Some(Effect::NotifyLock { client: next, .. }) = to.poll_effect() else {
                panic!("nobody is notified")
            };
            assert!(Arc::ptr_eq(&next, &here), "waiter {at}");
            held = lock(&to, &here, (wanted, *open)).unwrap();
        }
        let whole = comity_state::ByteRange::ALL;
        to.unlock(Sender::of(NOW, &here), &held, (&wanted, whole)).unwrap();
    }
}

#[test]
fn an_offer_of_a_free_lock_is_made_again() {
    let (from, to) = (engine(1), engine(2));
    let wanted = file(VOLUME, 1);
    let [(a, _), (b, _)] = ["a", "b"].map(|name| client(&from, name));
    let opens = [&a, &b].map(|client| opened(&from, client, wanted));
    let held = lock(&from, &a, (wanted, opens[0])).unwrap();
    assert!(lock(&from, &b, (wanted, opens[1])).is_err());
    let whole = comity_state::ByteRange::ALL;
    from.unlock(Sender::of(NOW, &a), &held, (&wanted, whole)).unwrap();
    move_volume(&from, &to);
    let Some(Effect::NotifyLock { client, .. }) = to.poll_effect() else { panic!("no notice") };
    assert_eq!(client.id(), b.id());
    let here = to.client_by_id(a.id()).unwrap();
    let refused = lock(&to, &here, (wanted, opens[0]));
    assert!(matches!(refused, Err(LockRefusal::Denied { .. })), "it is offered to another");
}

#[test]
fn a_recall_that_is_under_way_is_sent_again() {
    let to = engine(2);
    move_volume(&sample(), &to);
    let effects = std::iter::from_fn(|| to.poll_effect());
    let recalled = effects.filter(|it| matches!(it, Effect::Recall { .. })).count();
    assert_eq!(recalled, 1);
}

#[test]
fn a_client_with_state_of_another_volume_keeps_that_and_its_sessions() {
    let (from, to) = (engine(1), engine(2));
    let (a, session) = client(&from, "a");
    let [moved, stayed] = [VOLUME, ELSEWHERE].map(|volume| opened(&from, &a, file(volume, 1)));
    let sent = move_volume(&from, &to);
    let known = &sent.clients[0];
    assert_eq!((known.sessions.len(), known.states.len(), known.owners.len()), (0, 1, 1));
    let here = to.client_by_id(a.id()).unwrap();
    assert_eq!(to.test_stateid(Sender::of(NOW, &here), &moved), Ok(()));
    let unknown = to.test_stateid(Sender::of(NOW, &here), &stayed);
    assert_eq!(unknown, Err(Error::BadStateid));
    assert!(to.session(&session).is_none());
    // The client finds its clientid by its name, and makes a session for it.
    let args = comity_state::ExchangeId { owner: owner("a"), caller: a.caller(), update: false };
    let found = to.exchange_id(NOW, args).unwrap();
    assert_eq!(found.clientid, a.id());
    let fore = *from.session(&session).unwrap().fore();
    let made = to.create_session(NOW, &session_of(&found, (a.caller(), 1), fore)).unwrap();
    assert!(to.session(&made.session).is_some());
    to.close((Sender::of(NOW, &here), &file(VOLUME, 1)), &moved).unwrap();
}

#[test]
fn a_client_without_state_of_the_volume_stays() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    opened(&from, &a, file(ELSEWHERE, 1));
    let sent = move_volume(&from, &to);
    assert_eq!((sent.clients.len(), sent.files.len()), (0, 0));
    assert!(to.client_by_id(a.id()).is_none());
}

#[test]
fn a_new_state_gets_the_number_of_no_state_that_has_ended() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    opened(&from, &a, file(VOLUME, 1));
    let ended = opened(&from, &a, file(VOLUME, 2));
    from.close((Sender::of(NOW, &a), &file(VOLUME, 2)), &ended).unwrap();
    move_volume(&from, &to);
    let here = to.client_by_id(a.id()).unwrap();
    assert_ne!(opened(&to, &here, file(VOLUME, 3)).other, ended.other);
}

#[test]
fn a_change_of_a_callback_address_is_confirmed_at_the_other_engine() {
    let (from, to) = (engine(1), engine(2));
    let old = old_client(&from, "c");
    opened(&from, &old, file(VOLUME, 1));
    let callback = CallbackAddress { program: 2, ..CallbackAddress::default() };
    let args = Setclientid { owner: owner("c"), caller: old.caller(), callback };
    let announced = from.setclientid(NOW, args).unwrap();
    move_volume(&from, &to);
    let confirm = (announced.clientid, announced.confirm);
    assert_eq!(to.setclientid_confirm(NOW, confirm, old.caller()), Ok(()));
    assert_eq!(to.setclientid_confirm(NOW, confirm, old.caller()), Ok(()), "it is repeated");
    let here = to.client_of(old.id(), caller(b'c')).unwrap();
    assert_eq!(here.callback_address().map(|it| it.program), Some(2));
}

#[test]
fn a_volume_moves_back_to_an_engine_that_has_forgotten_its_clients() {
    let (here, there) = (engine(1), engine(2));
    let (a, session) = client(&here, "a");
    let wanted = file(VOLUME, 1);
    let got = open(&here, &a, (wanted, Share::BOTH), DelegationWish::Write).unwrap();
    move_volume(&here, &there);
    here.evict(NOW, &a);
    move_volume(&there, &here);
    let back = here.client_by_id(a.id()).unwrap();
    assert_eq!(back.sessions(), [session]);
    assert_eq!(here.test_stateid(Sender::of(NOW, &back), &got.stateid), Ok(()));
    assert!(here.has_delegations());
}

#[test]
fn a_file_that_two_exports_show_is_not_delegated_at_the_other_engine_either() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let here = file(VOLUME, 1);
    for export in [1, 2] {
        opened(&from, &a, FileKey { export, ..here });
    }
    assert!(!is_delegated(&from, &a, here));
    move_volume(&from, &to);
    let a = to.client_by_id(a.id()).unwrap();
    to.callbacks_work(&a);
    assert!(!is_delegated(&to, &a, here));
    assert!(is_delegated(&to, &a, file(VOLUME, 2)), "another file is");
}

/// Opens a file; returns whether it is delegated then.
fn is_delegated(engine: &Engine, client: &Arc<Client>, file: FileKey) -> bool {
    let got = open(engine, client, (file, Share::READ), DelegationWish::Read).unwrap();
    matches!(got.delegation, Delegation::Granted { .. })
}

#[test]
fn a_file_whose_delegation_was_recalled_a_moment_ago_is_not_delegated_again_after_a_move() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let wanted = file(VOLUME, 1);
    let got = open(&from, &a, (wanted, Share::READ), DelegationWish::Read).unwrap();
    let Delegation::Granted { stateid, .. } = got.delegation else { panic!("{got:?}") };
    let write = Share::access(Share::WRITE);
    assert_eq!(from.break_delegations(NOW, None, &wanted, write), Err(Error::Delay));
    from.delegreturn((Sender::of(NOW, &a), &wanted), &stateid).unwrap();
    move_volume(&from, &to);
    let a = to.client_by_id(a.id()).unwrap();
    to.callbacks_work(&a);
    assert!(!is_delegated(&to, &a, wanted));
}

#[test]
fn a_close_of_minor_version_0_is_answered_again_after_a_move() {
    let (from, to) = (engine(1), engine(2));
    let old = old_client(&from, "c");
    let wanted = file(VOLUME, 1);
    let turn = |engine: &Engine, client: &Arc<Client>, seqid| {
        engine.open_turn((NOW, client.caller()), client, b"opener", seqid)
    };
    let Ok(SeqidCheck::New(first)) = turn(&from, &old, 1) else { panic!("not new") };
    let stateid = opened(&from, &old, wanted);
    first.answered(b"opened", None);
    let shown = (Sender::of(NOW, &old), &wanted);
    let stateid = from.open_confirm(shown, &stateid).unwrap();
    let Ok(SeqidCheck::New(second)) = turn(&from, &old, 2) else { panic!("not new") };
    from.close(shown, &stateid).unwrap();
    second.answered(b"closed", None);
    move_volume(&from, &to);
    let here = to.client_of(old.id(), old.caller()).unwrap();
    let Ok(SeqidCheck::Again(reply)) = turn(&to, &here, 2) else { panic!("done twice") };
    assert_eq!(&*reply.result, b"closed");
    assert_eq!(turn(&to, &here, 7).err(), Some(Error::BadSeqid));
}

#[test]
fn an_owner_that_waits_moves_although_its_client_keeps_other_state() {
    let (from, to) = (engine(1), engine(2));
    let [(a, _), (b, _)] = ["a", "b"].map(|name| client(&from, name));
    let wanted = file(VOLUME, 1);
    let opens = [&a, &b].map(|client| opened(&from, client, wanted));
    opened(&from, &b, file(ELSEWHERE, 1));
    lock(&from, &a, (wanted, opens[0])).unwrap();
    assert!(lock(&from, &b, (wanted, opens[1])).is_err(), "it waits");
    let sent = move_volume(&from, &to);
    assert_eq!(sent.files[0].waits.len(), 1);
    to.evict(NOW, &to.client_by_id(a.id()).unwrap());
    let notified = std::iter::from_fn(|| to.poll_effect());
    let mut notified = notified.filter(|it| matches!(it, Effect::NotifyLock { .. }));
    assert!(notified.next().is_some());
    let here = to.client_by_id(b.id()).unwrap();
    lock(&to, &here, (wanted, opens[1])).unwrap();
}

#[test]
fn a_revoked_delegation_is_reported_and_freed_at_the_other_engine() {
    let to = engine(2);
    let sent = move_volume(&sample(), &to);
    let is_revoked = |it: &&ExportedState| matches!(it.kind, ExportedKind::Revoked(_));
    let known = &sent.clients[0];
    let revoked = known.states.iter().find(is_revoked).unwrap();
    let mut other = [0; 12];
    other[..8].copy_from_slice(&known.id.0.to_be_bytes());
    other[8..].copy_from_slice(&revoked.number.to_be_bytes());
    let stateid = Stateid { seqid: revoked.seqid, other };
    let here = to.client_by_id(known.id).unwrap();
    let sender = Sender::of(NOW, &here);
    assert_eq!(to.test_stateid(sender, &stateid), Err(Error::DelegRevoked));
    to.free_stateid(sender, &stateid).unwrap();
    assert_eq!(to.test_stateid(sender, &stateid), Err(Error::BadStateid));
}
