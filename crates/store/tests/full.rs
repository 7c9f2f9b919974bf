//! A store on a disk that is temporarily full.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use comity_store::{Store, StoreError};
use common::{Tmpfs, engine, meet, server};

/// Returns the number of remembered clients and the number of starts of a store.
fn remembered(path: &Path) -> (usize, u32) {
    let store = Store::open(&server(), path).unwrap();
    (store.recovered().records().count(), store.starts())
}

#[test]
fn a_store_on_a_full_disk_stores_again_when_there_is_room() {
    let Some(disk) = Tmpfs::mount("size=16m") else { return };
    let path = disk.path().join("clients");
    let store = Store::open(&server(), &path).unwrap();
    let engine = engine(&store);
    meet(&store, &engine, 0).unwrap();
    disk.fill();
    let mut next = 1..10_000;
    let error = next.find_map(|number| meet(&store, &engine, number).err());
    assert!(matches!(error, Some(StoreError::Write { .. })), "{error:?}");
    assert!(store.is_broken());
    let refused = meet(&store, &engine, next.next().unwrap());
    assert!(matches!(refused, Err(StoreError::Broken { .. })), "{refused:?}");
    assert!(matches!(store.repair(&engine), Err(StoreError::Write { .. })));
    assert!(store.is_broken() && engine.unstored().is_some());
    disk.make_room();
    assert!(store.repair(&engine).unwrap());
    assert!(!store.is_broken() && engine.unstored().is_none());
    assert!(!store.repair(&engine).unwrap(), "nothing is left to repair");
    meet(&store, &engine, next.next().unwrap()).unwrap();
    let met = next.start as usize;
    drop(store);
    assert_eq!(remembered(&path), (met, 2));
    assert!(!path.with_extension("new").exists());
}

/// A crash at this time loses nothing, because the old file has everything that was promised.
#[test]
fn a_repair_that_fails_leaves_the_old_file_alone() {
    let Some(disk) = Tmpfs::mount("size=16m") else { return };
    let path = disk.path().join("clients");
    let store = Store::open(&server(), &path).unwrap();
    let engine = engine(&store);
    meet(&store, &engine, 0).unwrap();
    disk.fill();
    let stored = (1..10_000).take_while(|number| meet(&store, &engine, *number).is_ok()).count();
    store.repair(&engine).unwrap_err();
    drop(store);
    assert!(!path.with_extension("new").exists(), "the new file uses no space");
    disk.make_room();
    // The record whose write failed may be stored or not.
    let (found, _) = remembered(&path);
    assert!(found == stored + 1 || found == stored + 2, "{found} of {stored}");
}
