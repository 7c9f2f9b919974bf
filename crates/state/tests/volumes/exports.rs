//! Some exports of a volume move, and the others stay.

use std::net::IpAddr;

use comity_state::{
    Error, ExportRefusal, ExportedVolume, FileKey, MovingFiles, Record, Recovered, Sequence,
    Sequenced,
};

use crate::refusals::request;
use crate::site::{NOW, VOLUME, client, engine, engine_with, file, lock, opened};

/// A file of another export of the same volume.
fn staying(number: u8) -> FileKey {
    FileKey { export: 2, ..file(VOLUME, number) }
}

fn moving() -> MovingFiles {
    MovingFiles::of_exports(VOLUME, &[1])
}

#[test]
fn the_state_of_other_exports_of_the_volume_stays() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    let open = opened(&from, &a, file(VOLUME, 1));
    lock(&from, &a, (file(VOLUME, 1), open)).unwrap();
    let (b, _) = client(&from, "b");
    let kept = opened(&from, &b, staying(2));
    lock(&from, &b, (staying(2), kept)).unwrap();
    let alone = from.export_volume(NOW, MovingFiles::of_exports(VOLUME, &[2])).unwrap();

    let bytes = from.hand_over_volume(NOW, moving()).unwrap().to_bytes().unwrap();
    let volume = ExportedVolume::from_bytes(&bytes).unwrap();
    assert_eq!(volume.clients.iter().map(|it| it.id).collect::<Vec<_>>(), [a.id()]);
    to.import_files_of(NOW, &volume, moving()).unwrap();
    from.forget_volume(NOW, moving(), &[1]);
    assert!(a.has_moved_lease() && !b.has_moved_lease());
    assert_eq!(from.export_volume(NOW, VOLUME).unwrap(), alone, "the other state is as before");
    assert_eq!((from.census().locks, to.census().locks), (1, 1));
}

#[test]
fn a_client_is_told_of_a_move_until_that_export_comes_back() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    for file in [file(VOLUME, 1), staying(2)] {
        opened(&from, &a, file);
    }
    for export in [1, 2] {
        let moving = MovingFiles::of_exports(VOLUME, &[export]);
        let volume = from.hand_over_volume(NOW, moving.clone()).unwrap();
        to.import_files_of(NOW, &volume, moving.clone()).unwrap();
        from.forget_volume(NOW, moving, &[export]);
    }
    let back = to.hand_over_volume(NOW, moving()).unwrap();
    from.import_files_of(NOW, &back, moving()).unwrap();
    assert!(a.has_moved_lease(), "the other export is still away");
    from.end_move(MovingFiles::of_exports(VOLUME, &[2]));
    assert!(!a.has_moved_lease());
}

/// A file with hard links in two exports has its locks in one place.
#[test]
fn exports_that_share_a_file_do_not_move_apart() {
    let from = engine(1);
    let (a, _) = client(&from, "a");
    opened(&from, &a, staying(1));
    let (b, _) = client(&from, "b");
    opened(&from, &b, file(VOLUME, 1));
    let refused = from.export_volume(NOW, moving());
    assert_eq!(refused, Err(ExportRefusal::SeveralExports(file(VOLUME, 1))));
    assert!(from.export_volume(NOW, VOLUME).is_ok());
}

#[test]
fn an_export_in_grace_does_not_move() {
    let from = engine(1);
    let (a, _) = client(&from, "a");
    opened(&from, &a, file(VOLUME, 1));
    let mut records = Recovered::new();
    let recorded = from.export_client(NOW, &a).unwrap().recorded();
    records.apply(Record::Client(recorded, None));
    assert!(from.begin_export_grace(NOW, 1, records));
    assert_eq!(from.export_volume(NOW, moving()), Err(ExportRefusal::Grace));
    assert!(from.export_volume(NOW, MovingFiles::of_exports(VOLUME, &[2])).is_ok());
}

/// A client that uses two servers by an address each goes on in its session when an address comes
/// to the other server, although it has another clientid there.
#[test]
fn a_client_goes_on_in_the_session_that_it_has_made_by_the_address_that_moves() {
    let (from, to) = (engine(1), engine(2));
    let address: IpAddr = [192, 0, 2, 1].into();
    let (a, by_address) = client(&from, "a");
    from.session(&by_address).unwrap().made_at(address);
    let open = opened(&from, &a, file(VOLUME, 1));
    opened(&from, &a, staying(2));
    let (there, other) = client(&to, "a");
    let moving = || moving().with_address(Some(address));
    let bytes = from.hand_over_volume(NOW, moving()).unwrap().to_bytes().unwrap();
    let volume = ExportedVolume::from_bytes(&bytes).unwrap();
    to.import_files_of(NOW, &volume, moving()).unwrap();
    assert_eq!(to.session(&by_address).unwrap().client().id(), there.id());
    assert_eq!(to.session(&other).unwrap().client().id(), there.id());
    lock(&to, &there, (file(VOLUME, 1), open)).unwrap();

    // The way back, and on to a third server.
    let volume = to.hand_over_volume(NOW, moving()).unwrap();
    assert_eq!(volume.clients[0].sessions.len(), 1, "the other session stays");
    from.import_files_of(NOW, &volume, moving()).unwrap_err();
    from.forget_volume(NOW, moving(), &[]);
    from.import_files_of(NOW, &volume, moving()).unwrap();
    assert_eq!(from.session(&by_address).unwrap().client().id(), a.id());
    let third = engine(3);
    third.import_files_of(NOW, &volume, moving()).unwrap();
    assert!(third.session(&by_address).is_some() && third.session(&other).is_none());
}

/// The first server answers DELAY until the address has left it, and the slot goes on there.
#[test]
fn calls_that_were_answered_before_the_address_has_left_are_not_missed() {
    let (from, to) = (engine(1), engine(2));
    let address: IpAddr = [192, 0, 2, 1].into();
    let (a, session) = client(&from, "a");
    from.session(&session).unwrap().made_at(address);
    opened(&from, &a, file(VOLUME, 1));
    let moving = moving().with_address(Some(address));
    let volume = from.hand_over_volume(NOW, moving.clone()).unwrap();
    to.import_files_of(NOW, &volume, moving).unwrap();
    let call = |seqid| Sequence { seqid, ..request(session) };
    for seqid in [1, 2] {
        let Ok(Sequenced::New(ticket)) = from.sequence(NOW, &call(seqid)) else { panic!() };
        ticket.answered(None);
    }
    let Ok(Sequenced::New(ticket)) = to.sequence(NOW, &call(3)) else { panic!() };
    ticket.answered(None);
    assert_eq!(to.sequence(NOW, &call(5)).err(), Some(Error::SeqMisordered), "only the first");
}

#[test]
fn no_import_takes_the_session_of_another_client() {
    let (from, to) = (engine(1), engine(2));
    let (a, _) = client(&from, "a");
    opened(&from, &a, file(VOLUME, 1));
    let (b, session) = client(&to, "b");
    let mut volume = from.export_volume(NOW, VOLUME).unwrap();
    volume.clients[0].sessions[0].id = session;
    assert!(to.import_volume(NOW, &volume).is_err());
    assert_eq!(to.session(&session).unwrap().client().id(), b.id());
}

/// A client may have lost its state of another export that is served here, and must not reclaim it.
#[test]
fn a_client_that_arrives_keeps_what_it_must_not_reclaim() {
    let from = engine(1);
    let (a, _) = client(&from, "a");
    opened(&from, &a, file(VOLUME, 1));
    let volume = from.hand_over_volume(NOW, moving()).unwrap();
    let to = engine_with(2, |it| it.durable = true);
    to.import_files_of(NOW, &volume, moving()).unwrap();
    let mut records = Vec::new();
    to.poll_records(&mut records);
    assert!(matches!(&records[..], [Record::Arrived(name, _)] if *name.id == *a.owner()));
}
