//! The file of credentials, revocations and creators.
#![allow(clippy::unwrap_used)]

mod common;

use comity_grants::{Creation, Medium, ObjectId, Record};
use comity_keys::{Algorithm, PrivateKey, Signer};
use comity_store::GrantFile;
use comity_vfs::Handle;
use common::server;
use redb::{Database, TableDefinition};

fn creation(number: u64) -> Creation {
    let object = ObjectId(Handle::new(&number.to_be_bytes()).unwrap());
    let creator = *PrivateKey::generate(Algorithm::Ed25519).unwrap().public_key();
    Creation { object, creator, number }
}

#[test]
fn creators_are_found_again_by_the_next_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants");
    let [kept, gone, other] = [1, 2, 3].map(creation);
    let (file, before) = GrantFile::open(&server(), &path).unwrap();
    assert_eq!(before.made, []);
    file.store(&server(), &[Record::Made(kept), Record::Made(gone)]).unwrap();
    file.store(&server(), &[Record::Unmade(gone.object)]).unwrap();
    drop(file);
    let (file, found) = GrantFile::open(&server(), &path).unwrap();
    assert_eq!(found.made, [kept]);
    file.replace(&server(), &[Record::Made(other)]).unwrap();
    drop(file);
    assert_eq!(GrantFile::look(&server(), &path).unwrap().made, [other]);
}

#[test]
fn a_file_without_creators_is_read_and_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants");
    drop(GrantFile::open(&server(), &path).unwrap());
    let made = TableDefinition::<&[u8], (u64, &str)>::new("made");
    let database = Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.delete_table(made).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert_eq!(GrantFile::look(&server(), &path).unwrap().made, []);
    let (file, found) = GrantFile::open(&server(), &path).unwrap();
    assert_eq!(found.made, []);
    let one = creation(1);
    file.store(&server(), &[Record::Made(one)]).unwrap();
    drop(file);
    assert_eq!(GrantFile::look(&server(), &path).unwrap().made, [one]);
}

#[test]
fn a_creator_that_cannot_be_read_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants");
    let one = creation(1);
    let (file, _) = GrantFile::open(&server(), &path).unwrap();
    file.store(&server(), &[Record::Made(one)]).unwrap();
    drop(file);
    let made = TableDefinition::<&[u8], (u64, &str)>::new("made");
    let database = Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(made).unwrap();
    table.insert(&[7; 8][..], (2, "no key")).unwrap();
    table.insert(&[][..], (3, one.creator.to_string().as_str())).unwrap();
    table.insert(&[7; 200][..], (4, one.creator.to_string().as_str())).unwrap();
    drop(table);
    transaction.commit().unwrap();
    drop(database);
    assert_eq!(GrantFile::look(&server(), &path).unwrap().made, [one]);
}
