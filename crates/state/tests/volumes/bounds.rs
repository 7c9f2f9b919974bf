use std::time::Duration;

use comity_state::{
    ByteRange, Census, ClientId, Error, ExchangeId, ExportedFile, ExportedKind, ExportedVolume,
    ImportRefusal, LockType, Settings,
};

use crate::introduction::session_of;
use crate::site::{NOW, VOLUME, client, engine, engine_with, file, lock, opened, owner, sample};

/// The state of one client, which has locked three ranges of a file.
pub(super) fn three_ranges() -> ExportedVolume {
    let from = engine(1);
    let (a, _) = client(&from, "a");
    let wanted = file(VOLUME, 1);
    let open = opened(&from, &a, wanted);
    lock(&from, &a, (wanted, open)).unwrap();
    let mut volume = from.export_volume(NOW, VOLUME).unwrap();
    for state in &mut volume.clients[0].states {
        if let ExportedKind::Lock { counted, ranges, .. } = &mut state.kind {
            let each = |first| (ByteRange { first, last: first + 1 }, LockType::Read);
            (*counted, *ranges) = (3, [0, 4, 8].map(each).into());
        }
    }
    volume
}

fn refusal(volume: &ExportedVolume, change: fn(&mut Settings)) -> Option<ImportRefusal> {
    let to = engine_with(2, change);
    let refused = to.import_volume(NOW, volume).map(drop).err();
    assert!(refused.is_none() || to.census() == Census::default(), "{refused:?}");
    refused
}

#[test]
fn locks_of_a_file_in_which_nobody_waits_keep_the_bound_of_a_file() {
    let volume = three_ranges();
    assert_eq!(refusal(&volume, |it| it.limits.locks_per_file = 3), None);
    let refused = refusal(&volume, |it| it.limits.locks_per_file = 2);
    assert_eq!(refused, Some(ImportRefusal::File(file(VOLUME, 1))));
}

#[test]
fn locks_that_are_here_already_count_towards_the_bound_of_a_file() {
    let to = engine_with(2, |it| it.limits.locks_per_file = 3);
    let (b, _) = client(&to, "b");
    let wanted = file(VOLUME, 1);
    let open = opened(&to, &b, wanted);
    lock(&to, &b, (wanted, open)).unwrap();
    let refused = to.import_volume(NOW, &three_ranges()).map(drop);
    assert_eq!(refused, Err(ImportRefusal::File(wanted)));
}

#[test]
fn a_host_has_no_more_grants_to_acknowledge_than_a_file_has_locks() {
    let mut volume = sample().export_volume(NOW, VOLUME).unwrap();
    assert_eq!(refusal(&volume, |it| it.limits.locks_per_file = 3), None);
    let host = &mut volume.clients[3];
    host.granted = vec![host.granted[0].clone(); 4];
    let refused = Some(ImportRefusal::Client(host.id, Error::Resource));
    assert_eq!(refusal(&volume, |it| it.limits.locks_per_file = 3), refused);
}

#[test]
fn a_file_whose_delays_are_over_is_not_kept() {
    let to = engine_with(2, |it| it.recall_rest = Duration::ZERO);
    let (waits, resting) = (Vec::new(), vec![(ClientId(7), Duration::from_secs(9))]);
    let (key, layout_rest, by_many_exports) = (file(VOLUME, 1), Duration::ZERO, true);
    let delayed = ExportedFile { key, by_many_exports, layout_rest, resting, waits };
    let volume = ExportedVolume { volume: VOLUME, clients: Vec::new(), files: vec![delayed] };
    to.import_volume(NOW, &volume).unwrap();
    assert_eq!(to.census(), Census::default());
}

#[test]
fn a_client_that_has_made_the_highest_number_of_sessions_makes_another() {
    let (from, to) = (engine(1), engine(2));
    let (a, session) = client(&from, "a");
    opened(&from, &a, file(VOLUME, 1));
    let mut volume = from.export_volume(NOW, VOLUME).unwrap();
    volume.clients[0].sessions_made = u64::MAX;
    to.import_volume(NOW, &volume).unwrap();
    let args = ExchangeId { owner: owner("a"), caller: a.caller(), update: false };
    let found = to.exchange_id(NOW, args).unwrap();
    let fore = *from.session(&session).unwrap().fore();
    let made = to.create_session(NOW, &session_of(&found, (a.caller(), 1), fore)).unwrap();
    assert!(to.session(&made.session).is_some());
}
