//! A store behaves in the same way on every medium.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use comity_state::{
    CallbackAddress, Caller, ClientOwner, Engine, Recovered, Setclientid, Settings, Verifier,
};
use comity_store::{MemoryMedium, Store, StoreError};

const NOW: Duration = Duration::from_secs(1);

fn engine(store: &Store) -> Engine {
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    Engine::new(NOW, settings, store.recovered())
}

/// Gives a client a lease that the store has to remember.
fn meet(store: &Store, engine: &Engine, id: u8) -> Result<(), StoreError> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: [id].into() };
    let (caller, callback) = (Caller::default(), CallbackAddress::default());
    let met = engine.setclientid(NOW, Setclientid { owner, caller, callback }).unwrap();
    engine.setclientid_confirm(NOW, (met.clientid, met.confirm), caller).unwrap();
    store.settle(engine, engine.unstored().unwrap())
}

fn count(recovered: &Recovered) -> usize {
    recovered.records().count()
}

#[test]
fn a_medium_that_is_opened_again_has_what_was_stored() {
    let medium = MemoryMedium::default();
    let store = Store::on(medium.open());
    assert_eq!((store.starts(), count(&store.recovered())), (1, 0));
    let engine = engine(&store);
    meet(&store, &engine, 1).unwrap();
    assert_eq!(engine.unstored(), None);
    let again = Store::on(medium.open());
    assert_eq!((again.starts(), count(&again.recovered())), (2, 1));
}

#[test]
fn a_store_promises_nothing_until_its_medium_is_repaired() {
    let medium = MemoryMedium::default();
    let store = Store::on(medium.open());
    let engine = engine(&store);
    meet(&store, &engine, 1).unwrap();
    medium.set_failing(true);
    assert!(matches!(meet(&store, &engine, 2), Err(StoreError::Write { .. })));
    assert!(store.is_broken());
    assert!(matches!(store.repair(&engine), Err(StoreError::Write { .. })));
    medium.set_failing(false);
    // The medium may have lost any of its records, so that nothing is written to it before the
    // repair.
    assert!(matches!(meet(&store, &engine, 3), Err(StoreError::Broken { .. })));
    assert_eq!(count(&Store::on(medium.open()).recovered()), 1);
    assert!(store.repair(&engine).unwrap());
    assert!(!store.is_broken() && engine.unstored().is_none());
    assert!(!store.repair(&engine).unwrap(), "nothing is left to repair");
    assert_eq!(count(&Store::on(medium.open()).recovered()), 3);
}
