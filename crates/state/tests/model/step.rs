use proptest::prelude::*;

pub(super) const CLIENTS: usize = 3;
pub(super) const FILES: usize = 2;
pub(super) const CELLS: u64 = 8;

/// An event.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Open {
        client: usize,
        file: usize,
        access: u32,
        deny: u32,
    },
    Close {
        client: usize,
        file: usize,
    },
    Lock {
        client: usize,
        file: usize,
        first: u64,
        last: u64,
        write: bool,
    },
    Unlock {
        client: usize,
        file: usize,
        first: u64,
        last: u64,
    },
    /// The client returns its delegation of a file.
    Return {
        client: usize,
        file: usize,
    },
    /// All other clients renew their leases, and this one does not.
    Silence {
        client: usize,
        seconds: u64,
    },
    /// The client restarts and loses its state.
    Reboot {
        client: usize,
    },
    /// All clients migrate to another engine, which continues with their state.
    Migrate,
    /// The server is killed; clients come back and reclaim, except for those that are not named.
    Restart,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let (client, file) = (0..CLIENTS, 0..FILES);
    let range = (0..CELLS, 0..CELLS).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        6 => (client.clone(), file.clone(), 1..=3_u32, prop_oneof![4 => Just(0), 1 => 0..=3_u32])
            .prop_map(|(client, file, access, deny)| Step::Open { client, file, access, deny }),
        3 => (client.clone(), file.clone()).prop_map(|(client, file)| Step::Close { client, file }),
        6 => (client.clone(), file.clone(), range.clone(), any::<bool>()).prop_map(
            |(client, file, (first, last), write)| Step::Lock { client, file, first, last, write }
        ),
        3 => (client.clone(), file.clone(), range).prop_map(|(client, file, (first, last))| {
            Step::Unlock { client, file, first, last }
        }),
        3 => (client.clone(), file).prop_map(|(client, file)| Step::Return { client, file }),
        2 => (client.clone(), 1..200_u64)
            .prop_map(|(client, seconds)| Step::Silence { client, seconds }),
        1 => client.prop_map(|client| Step::Reboot { client }),
        1 => Just(Step::Migrate),
        1 => Just(Step::Restart),
    ]
}
