//! The first engine forgets a volume that has moved, and tells clients that their leases have.

use std::sync::Arc;

use comity_state::{
    ByteRange, Client, DelegationWish, Engine, Error, FileKey, LockRequestKind, Record, Sender,
    SeqidCheck, Sequence, Sequenced, SessionId, Share, Stateid, StatusFlags,
};

use crate::moves::move_volume;
use crate::refusals::request;
use crate::returns::copy;
use crate::site::{
    ELSEWHERE, NOW, VOLUME, caller, client, engine, engine_with, file, host_lock, lock, old_client,
    open, opened, sample,
};

const EXPORT: u32 = 1;

fn forget(engine: &Engine) {
    engine.forget_volume(NOW, VOLUME, &[EXPORT]);
}

/// The engine of [`sample`], had its clients never had state.
fn sample_without_state() -> Engine {
    let engine = engine(1);
    let _people = ["a", "b"].map(|name| client(&engine, name));
    old_client(&engine, "c");
    engine.host(NOW, b"host", caller(9).origin).unwrap();
    while engine.poll_effect().is_some() {}
    engine
}

#[test]
fn an_engine_that_has_forgotten_a_volume_is_as_if_its_state_had_never_been() {
    let (from, to) = (sample(), engine(2));
    move_volume(&from, &to);
    assert!(from.has_delegations() && from.census().waits > 0 && from.census().locks > 0);
    forget(&from);
    assert_eq!(from.census(), sample_without_state().census());
    assert!(!from.has_delegations() && !from.has_denies() && !from.has_effects());
    forget(&from);
    from.tick(NOW);
    assert_eq!(from.census(), sample_without_state().census(), "nothing is forgotten twice");
    let empty = from.export_volume(NOW, VOLUME).unwrap();
    assert!(empty.clients.is_empty() && empty.files.is_empty());
}

#[test]
fn opens_that_deny_access_are_not_counted_any_more() {
    let engine = engine(1);
    let host = engine.host(NOW, b"host", caller(9).origin).unwrap();
    let denies = Share { access: Share::READ, deny: Share::WRITE };
    let wanted = (&b"process"[..], file(VOLUME, 1));
    engine.share_host(NOW, &host, wanted, denies, LockRequestKind::NonBlocking).unwrap();
    assert!(engine.has_denies());
    forget(&engine);
    assert!(!engine.has_denies());
    assert_eq!(engine.census().files, 0);
}

#[test]
fn no_owner_that_waits_is_told_of_a_lock_that_has_moved() {
    let from = engine(1);
    let people = ["a", "b", "d"].map(|name| client(&from, name).0);
    let wanted = file(VOLUME, 1);
    let host = from.host(NOW, b"host", caller(9).origin).unwrap();
    for client in &people {
        let open = opened(&from, client, wanted);
        let _ = lock(&from, client, (wanted, open));
    }
    assert!(from.lock_host(NOW, &host, &host_lock(1), LockRequestKind::Blocking).is_err());
    assert_eq!(from.census().waits, 3);
    while from.poll_effect().is_some() {}
    forget(&from);
    from.tick(NOW + from.settings().lock_wait);
    assert!(!from.has_effects());
    assert_eq!(from.census().waits, 0);
}

#[test]
fn messages_about_the_volume_that_were_not_sent_yet_are_dropped_and_others_are_not() {
    let from = engine(1);
    let (a, _) = client(&from, "a");
    for volume in [VOLUME, ELSEWHERE] {
        let wanted = file(volume, 1);
        open(&from, &a, (wanted, Share::BOTH), DelegationWish::Write).unwrap();
    }
    while from.poll_effect().is_some() {}
    for volume in [VOLUME, ELSEWHERE] {
        let write = Share::access(Share::WRITE);
        assert!(from.break_delegations(NOW, None, &file(volume, 1), write).is_err());
    }
    forget(&from);
    let left: Vec<_> = std::iter::from_fn(|| from.poll_effect()).collect();
    let about = |it: &comity_state::Effect| match it {
        comity_state::Effect::Recall { file, .. } => file.volume,
        other => panic!("{other:?}"),
    };
    assert_eq!(left.iter().map(about).collect::<Vec<_>>(), [ELSEWHERE]);
}

/// A client of each protocol has an open and a lock of this volume, and is waited for there.
fn furnish(engine: &Engine, people: &[Arc<Client>; 3], volume: u64) -> Vec<Stateid> {
    let wanted = file(volume, 1);
    let mut stateids = Vec::new();
    for client in people {
        let open = opened(engine, client, wanted);
        stateids.push(open);
        stateids.extend(lock(engine, client, (wanted, open)).ok());
    }
    open(engine, &people[0], (file(volume, 2), Share::BOTH), DelegationWish::Write).unwrap();
    stateids
}

#[test]
fn state_of_other_volumes_stays() {
    let [from, alone] = [1, 1].map(engine);
    let people = |engine: &Engine| {
        let [a, b] = ["a", "b"].map(|name| client(engine, name).0);
        [a, b, old_client(engine, "c")]
    };
    let (here, there) = (people(&from), people(&alone));
    let stay = furnish(&from, &here, ELSEWHERE);
    let gone = furnish(&from, &here, VOLUME);
    furnish(&alone, &there, ELSEWHERE);
    forget(&from);
    assert_eq!(from.census(), alone.census());
    let test = |stateid: &Stateid| {
        let owner = here.iter().find(|client| stateid.other[..8] == client.id().0.to_be_bytes());
        from.test_stateid(Sender::of(NOW, owner.unwrap()), stateid)
    };
    assert!(stay.iter().all(|it| test(it) == Ok(())));
    assert!(gone.iter().all(|it| test(it) == Err(Error::BadStateid)));
    let first = |engine: &Engine| {
        while engine.poll_effect().is_some() {}
        let whole = ByteRange::ALL;
        engine.unlock(Sender::of(NOW, &here[0]), &stay[1], (&file(ELSEWHERE, 1), whole)).unwrap();
        engine.poll_effect()
    };
    let next = first(&from);
    assert!(matches!(next, Some(comity_state::Effect::NotifyLock { .. })), "{next:?}");
}

/// The volume has moved before a host has acknowledged a lock of it.
#[test]
fn a_grant_that_is_not_acknowledged_is_forgotten() {
    let from = sample();
    let host = from.known_host(NOW, b"host").unwrap();
    let granted = || {
        let volume = from.export_volume(NOW, VOLUME).unwrap();
        let host = volume.clients.into_iter().find(|client| client.id == host.id());
        host.unwrap().granted.len()
    };
    assert_eq!(granted(), 1);
    forget(&from);
    from.lock_host(NOW, &host, &host_lock(6), LockRequestKind::NonBlocking).unwrap();
    assert_eq!(granted(), 0);
}

#[test]
fn copies_into_the_volume_end_although_their_files_are_closed() {
    let from = engine(1);
    let (a, session) = client(&from, "a");
    [VOLUME, ELSEWHERE].iter().for_each(|volume| copy(&from, (&a, session), *volume));
    forget(&from);
    let left: Vec<_> = from.copies(NOW, &a).iter().map(|it| it.file.volume).collect();
    assert_eq!(left, [ELSEWHERE]);
}

#[test]
fn an_owner_whose_last_close_was_elsewhere_stays_for_a_retry_of_it() {
    let from = engine(1);
    let old = old_client(&from, "c");
    let turn = |seqid| from.open_turn((NOW, old.caller()), &old, b"opener", seqid);
    let mut stateids = Vec::new();
    for (seqid, volume) in [(1, VOLUME), (2, ELSEWHERE)] {
        let Ok(SeqidCheck::New(new)) = turn(seqid) else { panic!("not new") };
        let stateid = opened(&from, &old, file(volume, 1));
        new.answered(b"opened", None);
        let shown = (Sender::of(NOW, &old), &file(volume, 1));
        stateids.push(from.open_confirm(shown, &stateid).unwrap_or(stateid));
    }
    let Ok(SeqidCheck::New(new)) = turn(3) else { panic!("not new") };
    from.close((Sender::of(NOW, &old), &file(ELSEWHERE, 1)), &stateids[1]).unwrap();
    new.answered(b"closed", None);
    forget(&from);
    let Ok(SeqidCheck::Again(reply)) = turn(3) else { panic!("done twice") };
    assert_eq!(&*reply.result, b"closed");
    let test = from.test_stateid(Sender::of(NOW, &old), &stateids[0]);
    assert_eq!(test, Err(Error::BadStateid));
}

#[test]
fn bytes_and_files_are_freed_in_the_file_system() {
    let from = engine_with(1, |it| it.locals = true);
    let (a, _) = client(&from, "a");
    for volume in [VOLUME, ELSEWHERE] {
        let wanted = file(volume, 1);
        let held = opened(&from, &a, wanted);
        lock(&from, &a, (wanted, held)).unwrap();
        open(&from, &a, (file(volume, 2), Share::BOTH), DelegationWish::Write).unwrap();
    }
    forget(&from);
    assert_eq!(from.poll_unlocked(), Some((file(VOLUME, 1), ByteRange::ALL)));
    assert_eq!(from.poll_undelegated(), Some(file(VOLUME, 2)));
    assert!(from.poll_unlocked().is_none() && from.poll_undelegated().is_none());
}

/// A client may open other files at any time, and reclaims them after a restart by its record.
#[test]
fn clients_keep_their_records_and_revocations_in_the_volume_are_no_part_of_them() {
    let from = engine_with(1, |it| it.durable = true);
    let (a, _) = client(&from, "a");
    let wanted = file(VOLUME, 4);
    open(&from, &a, (wanted, Share::BOTH), DelegationWish::Write).unwrap();
    let (before, write) = (NOW - from.settings().lease * 3, Share::access(Share::WRITE));
    assert!(from.break_delegations(before, None, &wanted, write).is_err());
    from.tick(NOW);
    let mut records = Vec::new();
    from.poll_records(&mut records);
    assert!(matches!(records.last(), Some(Record::Revoked(..))), "{records:?}");
    records.clear();
    forget(&from);
    from.poll_records(&mut records);
    let Some(Record::Unrevoked(name, of)) = records.pop() else { panic!("{records:?}") };
    assert_eq!((&*name.id, of, records.len()), (a.owner(), wanted, 0));
    records.clear();
    forget(&from);
    from.poll_records(&mut records);
    assert!(records.is_empty(), "{records:?}");
}

/// The flags of the next SEQUENCE.
fn flags(engine: &Engine, session: SessionId, seqid: u32) -> StatusFlags {
    let request = Sequence { seqid, digest: seqid.into(), ..request(session) };
    let Ok(Sequenced::New(ticket)) = engine.sequence(NOW, &request) else { panic!("not new") };
    let flags = ticket.answer().status;
    ticket.answered(Some(b""));
    flags
}

fn in_export(export: u32, number: u8) -> FileKey {
    FileKey { export, ..file(VOLUME, number) }
}

#[test]
fn sequence_tells_that_leases_have_moved_until_the_client_has_asked_for_each_export() {
    let from = engine(1);
    let (a, session) = client(&from, "a");
    let _opens = [1, 2].map(|export| opened(&from, &a, in_export(export, export as u8)));
    let is_told = |seqid| flags(&from, session, seqid).0 & 0x80 != 0;
    assert!(!is_told(1));
    from.forget_volume(NOW, VOLUME, &[1, 2, 3]);
    assert!(is_told(2) && a.has_moved_lease());
    a.knows_place(1);
    a.knows_place(3);
    assert!(is_told(3), "it has not asked for the second export");
    a.knows_place(2);
    assert!(!is_told(4) && !a.has_moved_lease());
}

#[test]
fn a_client_without_state_of_the_volume_is_told_of_no_move() {
    let from = engine(1);
    let [(a, session), (b, _)] = ["a", "b"].map(|name| client(&from, name));
    opened(&from, &a, file(ELSEWHERE, 1));
    opened(&from, &b, file(VOLUME, 1));
    forget(&from);
    assert!(!a.has_moved_lease() && b.has_moved_lease());
    assert_eq!(flags(&from, session, 1).0 & StatusFlags::LEASE_MOVED.0, 0);
}

/// The state of a file does not say by which exports its clients use it.
#[test]
fn a_client_of_a_file_that_two_exports_show_asks_for_one_of_them() {
    for asked in [1, 2] {
        let from = engine(1);
        let [(a, _), (b, _)] = ["a", "b"].map(|name| client(&from, name));
        opened(&from, &a, in_export(1, 1));
        opened(&from, &b, in_export(2, 1));
        from.forget_volume(NOW, VOLUME, &[1, 2]);
        assert!(b.has_moved_lease());
        b.knows_place(asked);
        assert!(!b.has_moved_lease() && a.has_moved_lease());
    }
}

#[test]
fn renew_of_minor_version_0_tells_that_leases_have_moved_and_renews() {
    let from = engine(1);
    let old = old_client(&from, "c");
    opened(&from, &old, file(VOLUME, 1));
    forget(&from);
    let later = NOW + from.settings().lease / 2;
    let renew = |now| from.renew(now, old.id(), old.caller());
    assert_eq!(renew(later), Err(Error::LeaseMoved));
    assert_eq!(old.renewed(), later);
    old.knows_place(EXPORT);
    assert_eq!(renew(later), Ok(()));
}

#[test]
fn a_move_ends_when_the_volume_is_served_here_again() {
    let from = engine(1);
    let (a, _) = client(&from, "a");
    opened(&from, &a, file(VOLUME, 1));
    forget(&from);
    from.end_move(ELSEWHERE);
    assert!(a.has_moved_lease());
    from.end_move(VOLUME);
    assert!(!a.has_moved_lease());
}
