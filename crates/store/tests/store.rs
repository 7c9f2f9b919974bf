//! Records still exist after the process has ended.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use comity_state::{
    CallbackAddress, Caller, ClientOwner, ClientProtocol, Engine, Identity, Origin, OriginChannel,
    Principal, Record, RecordedClient, Setclientid, Settings, Verifier,
};
use comity_store::{Store, StoreError};
use common::server;
use tempfile::TempDir;

const NOW: Duration = Duration::from_secs(1);

const CALLER: Caller =
    Caller { principal: Principal::new(1, 1000), origin: Origin::from_bytes([7; 16]) };

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients");
    (folder, path)
}

/// Settling an engine stores its records for all callers that wait.
#[test]
fn the_records_of_an_engine_are_stored_when_it_is_settled() {
    let (_folder, path) = folder();
    let store = Store::open(&server(), &path).unwrap();
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    let engine = Engine::new(NOW, settings, store.recovered());
    let Caller { principal, origin } = CALLER;
    let identity = Identity { principal, origin, verifier: Verifier([1; 8]) };
    let client = RecordedClient {
        protocol: ClientProtocol::Setclientid,
        channel: OriginChannel::Plain,
        id: b"c"[..].into(),
    };
    let record = Record::Client(client, Some(identity));
    meet(&engine, b"c");
    let mark = engine.unstored().expect("a client with a lease is to be remembered");
    store.settle(&engine, mark).unwrap();
    assert_eq!(engine.unstored(), None);
    drop(store);
    let recovered = Store::open(&server(), &path).unwrap().recovered();
    assert_eq!(recovered.records().collect::<Vec<_>>(), [record]);
}

/// Registers a client with a lease.
fn meet(engine: &Engine, id: &[u8]) {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: id.into() };
    let callback = CallbackAddress::default();
    let args = Setclientid { owner, caller: CALLER, callback };
    let met = engine.setclientid(NOW, args).unwrap();
    engine.setclientid_confirm(NOW, (met.clientid, met.confirm), CALLER).unwrap();
}

#[test]
fn a_damaged_file_is_an_error_that_says_what_to_do() {
    let (_folder, path) = folder();
    fs::write(&path, b"these are no records").unwrap();
    let error = Store::open(&server(), &path).err().unwrap();
    assert!(matches!(error, StoreError::Read { .. }));
    assert!(error.to_string().contains("moved away"), "{error}");
}

#[test]
fn nobody_else_may_read_a_store() {
    let (_folder, path) = folder();
    File::create(&path).unwrap().set_permissions(Permissions::from_mode(0o666)).unwrap();
    let store = Store::open(&server(), &path).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(store);
}

#[test]
fn two_processes_do_not_share_a_store() {
    let (_folder, path) = folder();
    let _store = Store::open(&server(), &path).unwrap();
    assert!(matches!(Store::open(&server(), &path), Err(StoreError::Read { .. })));
}

#[test]
fn every_start_has_a_number_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients");
    let starts = [(); 3].map(|()| Store::open(&server(), &path).unwrap().starts());
    assert_eq!(starts, [1, 2, 3]);
}

/// Returns the file of a store with `clients` clients, before the process ended and after.
fn filled(path: &Path, clients: u32) -> [Vec<u8>; 2] {
    let store = Store::open(&server(), path).unwrap();
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    let engine = Engine::new(NOW, settings, store.recovered());
    (0..clients).for_each(|client| meet(&engine, &client.to_be_bytes()));
    store.settle(&engine, engine.unstored().unwrap()).unwrap();
    let killed = fs::read(path).unwrap();
    drop(store);
    [killed, fs::read(path).unwrap()]
}

/// Opens a store, stores a new client, and returns the records that were found.
fn used(path: &Path) -> Result<Vec<Record>, StoreError> {
    let store = Store::open(&server(), path)?;
    let recovered = store.recovered();
    let found = recovered.records().collect();
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    let engine = Engine::new(NOW, settings, recovered);
    meet(&engine, b"another");
    store.settle(&engine, engine.unstored().unwrap())?;
    Ok(found)
}

/// Returns whether a record is that of one of `clients` clients.
fn is_one_of(clients: u32, record: &Record) -> bool {
    let Record::Client(client, _) = record else { return false };
    let number = client.id.as_ref().try_into().map(u32::from_be_bytes);
    number.is_ok_and(|number| number < clients)
}

/// A folder in memory if possible, because a thousand stores are opened in it.
fn quick_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A damaged file causes no crash, and every client that is read from it was stored.
#[test]
fn a_store_that_is_cut_off_or_overwritten_anywhere_is_read_or_refused() {
    let folder = quick_folder();
    let damaged = folder.path().join("damaged");
    let page = 4096;
    for whole in filled(&folder.path().join("clients"), 300) {
        for at in (0..whole.len()).step_by(page) {
            let mut bad = whole.clone();
            let end = (at + 64).min(bad.len());
            bad[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
            for bytes in [&bad[..], &whole[..at]] {
                fs::write(&damaged, bytes).unwrap();
                let found = used(&damaged).unwrap_or_default();
                assert!(found.iter().all(|it| is_one_of(300, it)), "{at}: {found:?}");
            }
        }
    }
}
