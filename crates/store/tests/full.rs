//! A store on a disk that is temporarily full.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use comity_state::{CallbackAddress, Caller, ClientOwner, Engine, Setclientid, Settings, Verifier};
use comity_store::{Store, StoreError};
use tempfile::TempDir;

const NOW: Duration = Duration::from_secs(1);

/// A file system in memory, which is unmounted on drop.
struct Tmpfs(TempDir);

impl Tmpfs {
    fn mount(options: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(place.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("skipped: only root may mount");
        }
        mounted.then_some(Self(place))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Uses all free bytes.
    fn fill(&self) {
        let mut file = File::create(self.path().join("fill")).unwrap();
        while file.write(&[1; 4096]).is_ok_and(|written| written > 0) {}
    }

    fn make_room(&self) {
        fs::remove_file(self.path().join("fill")).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).output();
    }
}

fn engine(store: &Store) -> Engine {
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    Engine::new(NOW, settings, store.recovered())
}

/// Registers a new client, which the store has to remember.
fn meet(store: &Store, engine: &Engine, number: u32) -> Result<(), StoreError> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: number.to_be_bytes().into() };
    let (caller, callback) = (Caller::default(), CallbackAddress::default());
    let args = Setclientid { owner, caller, callback };
    let met = engine.setclientid(NOW, args).unwrap();
    engine.setclientid_confirm(NOW, (met.clientid, met.confirm), caller).unwrap();
    store.settle(engine, engine.unstored().unwrap())
}

/// Returns the number of remembered clients and the number of starts of a store.
fn remembered(path: &Path) -> (usize, u32) {
    let store = Store::open(path).unwrap();
    (store.recovered().records().count(), store.starts())
}

#[test]
fn a_store_on_a_full_disk_stores_again_when_there_is_room() {
    let Some(disk) = Tmpfs::mount("size=16m") else { return };
    let path = disk.path().join("clients");
    let store = Store::open(&path).unwrap();
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
    let store = Store::open(&path).unwrap();
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
