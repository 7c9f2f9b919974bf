use proptest::prelude::*;

/// Two clients with sessions, one of minor version 0, and a host of NLM.
pub(super) const PEOPLE: usize = 4;
pub(super) const OLD: usize = 2;
pub(super) const HOST: usize = 3;
pub(super) const FILES: usize = 2;
pub(super) const OWNERS: usize = 2;
const CELLS: u64 = 6;

/// A file, a lock-owner, and bytes of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) owner: usize,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) write: bool,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Open {
        who: usize,
        file: usize,
        access: u32,
        deny: u32,
        delegation: bool,
    },
    Close {
        who: usize,
        file: usize,
    },
    Lock {
        who: usize,
        place: Place,
        wait: bool,
    },
    Unlock {
        who: usize,
        place: Place,
    },
    /// A host waits no longer.
    Cancel {
        place: Place,
    },
    /// The host acknowledges its last grant, or refuses it.
    Answer {
        known: bool,
    },
    /// The client returns its delegation of a file, or frees the revoked stateid of it.
    Return {
        who: usize,
        file: usize,
    },
    /// A program writes a file.
    Conflict {
        file: usize,
    },
    /// The client repeats its last request.
    Again {
        who: usize,
    },
    /// Time passes.
    Ahead {
        seconds: u64,
    },
    /// The state of the volume moves to another engine.
    Move,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let (who, client, file) = (0..PEOPLE, 0..HOST, 0..FILES);
    let bytes = (0..CELLS, 0..CELLS).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let place = (file.clone(), 0..OWNERS, bytes, any::<bool>())
        .prop_map(|(file, owner, (first, last), write)| Place { file, owner, first, last, write });
    let deny = prop_oneof![6 => Just(0), 1 => 1..=3_u32];
    prop_oneof![
        8 => (client.clone(), file.clone(), 1..=3_u32, deny, any::<bool>()).prop_map(
            |(who, file, access, deny, delegation)| {
                Step::Open { who, file, access, deny, delegation }
            }
        ),
        2 => (client.clone(), file.clone()).prop_map(|(who, file)| Step::Close { who, file }),
        12 => (who.clone(), place.clone(), any::<bool>())
            .prop_map(|(who, place, wait)| Step::Lock { who, place, wait }),
        5 => (who, place.clone()).prop_map(|(who, place)| Step::Unlock { who, place }),
        1 => place.prop_map(|place| Step::Cancel { place }),
        1 => any::<bool>().prop_map(|known| Step::Answer { known }),
        4 => (client.clone(), file.clone()).prop_map(|(who, file)| Step::Return { who, file }),
        1 => file.prop_map(|file| Step::Conflict { file }),
        2 => client.prop_map(|who| Step::Again { who }),
        2 => prop_oneof![3 => 1..20_u64, 1 => 20..200_u64]
            .prop_map(|seconds| Step::Ahead { seconds }),
        3 => Just(Step::Move),
    ]
}
