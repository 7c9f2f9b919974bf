#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use comity_state::{
    ClientProtocol, FileKey, Identity, Origin, OriginChannel, Principal, RecordedClient, Verifier,
};
use comity_vfs::{AsServer, Handle};
use proptest::prelude::*;

use super::*;
use crate::Store;

const PLAIN: OriginChannel = OriginChannel::Plain;

/// The records of a set, sorted so that sets can be compared.
fn sorted(recovered: &Recovered) -> BTreeSet<String> {
    recovered.records().map(|record| format!("{record:?}")).collect()
}

fn record() -> impl Strategy<Value = Record> {
    let protocol = prop_oneof![
        Just(ClientProtocol::Setclientid),
        Just(ClientProtocol::ExchangeId),
        Just(ClientProtocol::Nlm)
    ];
    let client = (protocol, 0_u8..4).prop_map(|(protocol, id)| RecordedClient {
        protocol,
        channel: OriginChannel::Plain,
        id: [id].into(),
    });
    let file = (0_u64..3, 1_u8..4).prop_map(|(volume, handle)| {
        let handle = Handle::new(&[handle]).unwrap();
        FileKey { volume, export: 0, handle }
    });
    (client, file, 0..11_u8).prop_map(|(client, file, kind)| match kind {
        0 => Record::Forget(client),
        1 => Record::Revoked(client, file),
        4 => Record::Client(client, None),
        5 => Record::SizeOpen(file),
        6 => Record::SizeKnown(file),
        8 => Record::Arrived(client, Some(identity(8))),
        9 => Record::Unrevoked(client, file),
        10 => Record::RevocationsKnown(client),
        _ => Record::Client(client, Some(identity(kind))),
    })
}

fn identity(number: u8) -> Identity {
    let origin = Origin::of([192, 0, 2, number].into());
    Identity {
        principal: Principal::new(1, number.into()),
        origin,
        verifier: Verifier([number; 8]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Stores records in any order, in batches, and closes and opens the file between them.
    #[test]
    fn a_store_recovers_the_set_that_its_records_form(
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
        let again = Store::open(&AsServer::here().unwrap(), &path).unwrap().recovered();
        prop_assert_eq!(sorted(&again), sorted(&model));
    }
}

/// Format 1 named a file by the number of its export and stored no identities. Any caller that uses
/// the name of such a client may be that client, so that the upgrade costs no client its locks.
#[test]
fn a_client_that_lost_files_in_a_store_of_format_1_may_reclaim_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients");
    let client = |id: u8| RecordedClient {
        protocol: ClientProtocol::ExchangeId,
        channel: OriginChannel::Plain,
        id: [id].into(),
    };
    let (lost, kept) = (key::of_client(&client(1)), key::of_client(&client(2)));
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        transaction.open_table(META).unwrap().insert("format", 1).unwrap();
        let mut clients = transaction.open_table(NAMELESS).unwrap();
        [&lost, &kept].iter().for_each(|key| drop(clients.insert(key.as_slice(), ()).unwrap()));
        let mut revoked = transaction.open_multimap_table(REVOKED).unwrap();
        revoked.insert(&*lost, [0, 0, 0, 1, 9].as_slice()).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    for _ in 0..2 {
        let records: Vec<_> =
            Store::open(&AsServer::here().unwrap(), &path).unwrap().recovered().records().collect();
        assert_eq!(records, [Record::Client(client(2), None)]);
    }
}

#[test]
fn a_store_without_a_table_of_sizes_gets_one_and_sizes_keep_their_export() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients");
    let server = AsServer::here().unwrap();
    drop(Store::open(&server, &path).unwrap());
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    assert!(transaction.delete_table(SIZES).unwrap());
    transaction.commit().unwrap();
    drop(database);
    assert_eq!(Store::open(&server, &path).unwrap().recovered().open_sizes().count(), 0);
    let file = FileKey { volume: 7, export: 9, handle: Handle::new(&[1, 2]).unwrap() };
    let database = Database::create(&path).unwrap();
    apply(&database, &[Record::SizeOpen(file)]).unwrap();
    drop(database);
    let recovered = Store::open(&server, &path).unwrap().recovered();
    let found: Vec<_> = recovered.open_sizes().map(|it| (it.volume, it.export)).collect();
    assert_eq!(found, [(7, 9)]);
    assert!(recovered.open_sizes().all(|it| it.handle == file.handle));
}

#[test]
fn an_identity_is_read_as_it_was_written() {
    let bytes = key::of_identity(Some(identity(3)));
    assert_eq!(key::identity(&bytes, PLAIN), Some(Some(identity(3))));
    assert_eq!(key::identity(&key::of_identity(None), PLAIN), Some(None));
    for length in [1, 31] {
        assert_eq!(key::identity(&bytes[..length], PLAIN), None);
    }
    assert_eq!(key::identity(&[&bytes[..], &[0]].concat(), PLAIN), None);
}
