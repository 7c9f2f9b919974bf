#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use comity_state::{Desk, FileKey, RecordedClient};
use comity_vfs::Handle;
use proptest::prelude::*;

use super::*;

/// An order in which two ways to the same set are the same.
fn sorted(recovered: &Recovered) -> BTreeSet<String> {
    recovered.records().map(|record| format!("{record:?}")).collect()
}

fn record() -> impl Strategy<Value = Record> {
    let desk = prop_oneof![Just(Desk::Setclientid), Just(Desk::ExchangeId), Just(Desk::Nlm)];
    let client = (desk, 0_u8..4).prop_map(|(desk, id)| RecordedClient { desk, id: [id].into() });
    let file = (0_u32..3, 1_u8..4)
        .prop_map(|(export, handle)| FileKey { export, handle: Handle::new(&[handle]).unwrap() });
    (client, file, 0..4).prop_map(|(client, file, kind)| match kind {
        0 => Record::Forget(client),
        1 => Record::Revoked(client, file),
        _ => Record::Client(client),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Records in any order, in batches, with the file closed and opened between them.
    #[test]
    fn a_store_remembers_what_the_records_make(
        batches in proptest::collection::vec(proptest::collection::vec(record(), 0..12), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        let mut model = Recovered::new();
        for batch in batches {
            let database = Database::create(&path).unwrap();
            format(&database).unwrap();
            prop_assert_eq!(sorted(&recovered(&database).unwrap()), sorted(&model));
            apply(&database, &batch).unwrap();
            batch.into_iter().for_each(|record| model.apply(record));
        }
        let again = Store::open(&path).unwrap().recovered();
        prop_assert_eq!(sorted(&again), sorted(&model));
    }
}
