use std::time::Duration;

use comity_state::{
    BackChannel, CallbackSecurity, Census, ChannelAttrs, ClientId, ExportedFile, ExportedKind,
    ExportedVolume, ImportRefusal, OwnerKind, Section, StateName,
};

use crate::site::{NOW, VOLUME, engine, file, sample};

type Change = fn(&mut ExportedVolume);

/// Changes after which the values contradict each other, and the section that is named.
const CHANGES: [(Section, Change); 33] = [
    (Section::Clients, |it| it.clients[1].name = it.clients[0].name.clone()),
    (Section::Clients, |it| it.clients[1].id = ClientId(it.clients[0].id.0 ^ 1 << 63)),
    (Section::Sessions, |it| it.clients[2].sessions = it.clients[0].sessions.clone()),
    (Section::Sessions, |it| {
        let session = it.clients[0].sessions[0].clone();
        it.clients[0].sessions.push(session);
    }),
    (Section::Sessions, |it| it.clients[0].sessions[0].slots.clear()),
    (Section::Sessions, |it| it.clients[0].sessions[0].fore.request_bytes_max = u32::MAX),
    (Section::Sessions, |it| fore(it).request_bytes_max = 255),
    (Section::Sessions, |it| fore(it).response_bytes_max = 255),
    (Section::Sessions, |it| fore(it).operations_max = 65),
    (Section::Sessions, |it| fore(it).requests_max = 0),
    (Section::Sessions, |it| back(it).attrs.response_bytes_max = 255),
    (Section::Sessions, |it| back(it).attrs.requests_max = 17),
    (Section::Sessions, |it| back(it).security = vec![CallbackSecurity::None; 17].into()),
    (Section::Sessions, |it| back(it).security = [sys(1, 17)].into()),
    (Section::Sessions, |it| back(it).security = [sys(256, 1)].into()),
    (Section::Owners, |it| it.clients[0].owners[0].closed = Some(1)),
    (Section::Owners, |it| {
        it.clients[0].owners[1].name = it.clients[0].owners[0].name.clone();
        it.clients[0].owners[1].kind = it.clients[0].owners[0].kind;
    }),
    (Section::States, |it| it.clients[0].states[0].number = 0),
    (Section::States, |it| it.clients[0].states[0].number = it.clients[0].states[1].number),
    (Section::States, |it| {
        let (client, number) = (it.clients[0].id, it.clients[0].states[1].number);
        it.clients[0].states[0].known_as = Some(StateName { client, number });
    }),
    (Section::States, |it| it.clients[0].states.reverse()),
    (Section::States, |it| it.clients[0].states[0].file = file(VOLUME + 1, 1)),
    (Section::States, |it| it.clients[0].owners[0].kind = OwnerKind::Lock),
    (Section::States, |it| {
        if let Some(ExportedKind::Lock { ranges, .. }) = lock(it) {
            ranges[0].0.first = 9;
            ranges[0].0.last = 8;
        }
    }),
    (Section::States, |it| {
        if let Some(ExportedKind::Lock { open, .. }) = lock(it) {
            *open = 1;
        }
    }),
    (Section::States, |it| {
        if let Some(ExportedKind::Lock { counted, .. }) = lock(it) {
            *counted = 0;
        }
    }),
    (Section::Grants, |it| it.clients[3].granted[0].owner = 0),
    (Section::Grants, |it| {
        let grant = it.clients[3].granted[0].clone();
        let owner = it.clients[0].owners.iter().find(|it| it.kind == OwnerKind::Lock).unwrap();
        let grant = comity_state::ExportedGrant { owner: owner.number, ..grant };
        it.clients[0].granted.push(grant);
    }),
    (Section::Files, |it| it.files.push(unused(9, Vec::new()))),
    (Section::Files, |it| it.files.push(unused(9, vec![(ClientId(7), Duration::ZERO)]))),
    (Section::Files, |it| {
        let file = it.files[0].clone();
        it.files.push(file);
    }),
    (Section::Files, |it| it.files[0].waits[0].owner += 1000),
    (Section::Files, |it| {
        let wait = it.files[0].waits[0].clone();
        it.files[0].waits.push(wait);
    }),
];

fn fore(volume: &mut ExportedVolume) -> &mut ChannelAttrs {
    &mut volume.clients[0].sessions[0].fore
}

fn back(volume: &mut ExportedVolume) -> &mut BackChannel {
    volume.clients[0].sessions[0].back.as_mut().unwrap()
}

/// A credential with a name of `length` bytes and that many additional groups.
fn sys(length: usize, groups: usize) -> CallbackSecurity {
    let (machine, gids) = (vec![b'm'; length].into(), vec![1; groups].into());
    CallbackSecurity::Sys { machine, uid: 1, gid: 1, gids }
}

/// A file that no client has open, and in which nobody waits.
fn unused(number: u8, resting: Vec<(ClientId, Duration)>) -> ExportedFile {
    let (key, waits, layout_rest) = (file(VOLUME, number), Vec::new(), Duration::ZERO);
    ExportedFile { key, by_many_exports: true, layout_rest, resting, waits }
}

fn lock(volume: &mut ExportedVolume) -> Option<&mut ExportedKind> {
    let mut kinds = volume.clients[0].states.iter_mut().map(|state| &mut state.kind);
    kinds.find(|kind| matches!(kind, ExportedKind::Lock { .. }))
}

#[test]
fn values_that_contradict_each_other_are_refused_with_the_name_of_their_section() {
    let volume = sample().export_volume(NOW, VOLUME).unwrap();
    for (at, (section, change)) in CHANGES.into_iter().enumerate() {
        let mut changed = volume.clone();
        change(&mut changed);
        assert_ne!(changed, volume, "{at}");
        let to = engine(2);
        let refused = to.import_volume(NOW, &changed).map(drop);
        let named =
            matches!(&refused, Err(ImportRefusal::Contradiction(found, _)) if *found == section);
        assert!(named, "{at}: {refused:?}");
        assert_eq!(to.census(), Census::default(), "{at}");
    }
}
