//! The records of a head of a cluster, in etcd.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/etcd.rs"]
mod etcd_server;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_state::{
    CallbackAddress, Caller, ClientOwner, ClientProtocol, Engine, FileKey, OriginChannel, Record,
    RecordedClient, Setclientid, Verifier,
};
use comity_store::etcd::{Compare, Etcd, EtcdError, Op, RangeChanges};
use comity_store::{
    EtcdRecords, Fence, FencedError, Store, StoreError, read_run, read_runs, remove_runs,
    stored_runs,
};
use comity_vfs::Handle;
use common::{engine, meet};
use etcd_server::EtcdServer;

const PATIENCE: Duration = Duration::from_secs(10);
const HEAD: &[u8] = b"/comity/heads/a";

fn connect(server: &EtcdServer) -> Arc<Etcd> {
    Arc::new(Etcd::new(&[server.address()], None, PATIENCE).unwrap())
}

/// Joins as the head `a`, with a lease of some seconds.
fn join(etcd: &Arc<Etcd>, seconds: u32) -> (i64, EtcdRecords) {
    let lease = etcd.grant_lease(seconds).unwrap();
    let key = Op::Put { key: HEAD.to_vec(), value: b"{}".to_vec(), lease };
    assert!(etcd.transact(&[Compare::Created(HEAD.to_vec(), 0)], &[key]).unwrap());
    let created = etcd.get(HEAD).unwrap().unwrap().created;
    let fence = Fence { key: HEAD.to_vec(), created };
    (lease, EtcdRecords::new(Arc::clone(etcd), (fence, Duration::ZERO), "run1".to_owned()))
}

/// Registers a later instance of a client.
fn meet_again(store: &Store, engine: &Engine, number: u32) {
    let owner = ClientOwner { verifier: Verifier([2; 8]), id: number.to_be_bytes().into() };
    let (caller, callback) = (Caller::default(), CallbackAddress::default());
    let met = engine.setclientid(common::NOW, Setclientid { owner, caller, callback }).unwrap();
    engine.setclientid_confirm(common::NOW, (met.clientid, met.confirm), caller).unwrap();
    store.settle(engine, engine.unstored().unwrap()).unwrap();
}

/// Returns the records of another run, under the fence of the first.
fn first_as(etcd: &Arc<Etcd>, run: &str) -> EtcdRecords {
    let created = etcd.get(HEAD).unwrap().unwrap().created;
    let fence = Fence { key: HEAD.to_vec(), created };
    EtcdRecords::new(Arc::clone(etcd), (fence, PATIENCE), run.to_owned())
}

/// Returns the name of a client with sessions.
fn recorded(number: u8) -> RecordedClient {
    let (protocol, channel) = (ClientProtocol::ExchangeId, OriginChannel::Plain);
    RecordedClient { protocol, channel, id: [number].into() }
}

fn stored(etcd: &Etcd) -> Vec<Record> {
    read_run(etcd, "run1", Path::new("/srv")).unwrap().recovered.records().collect()
}

#[test]
fn another_head_reads_what_was_stored_before_each_reply() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = connect(&server);
    let (_, records) = join(&etcd, 60);
    let store = Store::on(records.open(7));
    assert_eq!(store.starts(), 7);
    let engine = engine(&store);
    // More than one transaction of etcd holds.
    for number in 0..300 {
        meet(&store, &engine, number).unwrap();
    }
    assert_eq!(stored(&etcd).len(), 300);
    assert_eq!(read_run(&etcd, "run2", Path::new("/srv")).unwrap().recovered.records().count(), 0);
    let runs = ["run1".to_owned()].into();
    assert_eq!(stored_runs(&etcd).unwrap(), runs);
    remove_runs(&first_as(&etcd, "run2"), &runs).unwrap();
    assert_eq!(stored(&etcd), []);
}

#[test]
fn a_head_that_has_lost_its_lease_stores_nothing() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = connect(&server);
    let (lease, records) = join(&etcd, 60);
    let store = Store::on(records.open(1));
    let engine = engine(&store);
    meet(&store, &engine, 1).unwrap();
    etcd.revoke_lease(lease).unwrap();
    // The next run of the same head does not make the lease of this one good.
    let (_, next) = join(&etcd, 60);
    let refused = meet(&store, &engine, 2);
    assert!(matches!(refused, Err(StoreError::Write { .. })), "{refused:?}");
    assert!(store.repair(&engine).is_err());
    assert!(matches!(records.change(vec![Op::Delete(b"x".to_vec())]), Err(FencedError::Fenced)));
    next.change(vec![Op::Delete(b"x".to_vec())]).unwrap();
    assert_eq!(stored(&etcd).len(), 1);
}

#[test]
fn a_store_is_repaired_when_etcd_answers_again() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = Arc::new(Etcd::new(&[server.address()], None, Duration::from_secs(2)).unwrap());
    let (_, records) = join(&etcd, 60);
    let store = Store::on(records.open(1));
    let engine = engine(&store);
    meet(&store, &engine, 1).unwrap();
    server.freeze();
    let begun = Instant::now();
    assert!(meet(&store, &engine, 2).is_err());
    assert!(begun.elapsed() < Duration::from_secs(8), "a silent etcd is given up");
    server.thaw();
    while store.repair(&engine).is_err() {
        assert!(begun.elapsed() < PATIENCE);
    }
    meet(&store, &engine, 3).unwrap();
    assert_eq!(stored(&etcd).len(), 3);
}

#[test]
fn clients_that_lost_their_state_of_an_export_are_told_apart_until_they_are_recorded_anew() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = connect(&server);
    let (_, records) = join(&etcd, 60);
    let store = Store::on(records.open(1));
    let engine = engine(&store);
    meet(&store, &engine, 1).unwrap();
    let clients: Vec<Record> = stored(&etcd);
    let [Record::Client(client, _)] = &clients[..] else { unreachable!("{clients:?}") };
    records.note_lost(Path::new("/srv"), std::slice::from_ref(client)).unwrap();
    let lost = |export: &str| read_run(&etcd, "run1", Path::new(export)).unwrap().lost;
    assert_eq!(lost("/srv"), std::slice::from_ref(client));
    assert_eq!(lost("/srv2"), []);
    // A client that comes back to the export with new state may reclaim that.
    records.note_lost(Path::new("/srv2"), std::slice::from_ref(client)).unwrap();
    records.forget_lost(Path::new("/srv2"), std::slice::from_ref(client)).unwrap();
    assert_eq!((lost("/srv2"), lost("/srv").len()), (vec![], 1));
    // A client that comes with state of another export gets nothing back that it has lost.
    let others = [Record::Arrived(client.clone(), None), Record::RevocationsKnown(client.clone())];
    records.open(1).medium.apply(&common::server(), &others).unwrap();
    assert_eq!(lost("/srv").len(), 1);
    // A client of NFSv4.0 that comes anew replaces the earlier instance and its losses.
    meet_again(&store, &engine, 1);
    assert_eq!(lost("/srv"), []);
}

/// The client has a record of each run, and loses its state of one export in the first.
#[test]
fn a_loss_at_one_run_holds_at_all_later_ones() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = connect(&server);
    let (_, first) = join(&etcd, 60);
    let second = first_as(&etcd, "run2");
    let [client, other] = [1, 2].map(recorded);
    let file = FileKey { volume: 1, export: 7, handle: Handle::new(&[1]).unwrap() };
    let records = [
        Record::Client(client.clone(), None),
        Record::Client(other.clone(), None),
        Record::Revoked(other.clone(), file),
    ];
    first.open(1).medium.apply(&common::server(), &records).unwrap();
    second.open(2).medium.apply(&common::server(), &records[..2]).unwrap();
    first.note_lost(Path::new("/srv"), std::slice::from_ref(&client)).unwrap();

    let read = |runs: &[&str]| {
        let runs: Vec<String> = runs.iter().map(|&run| run.to_owned()).collect();
        read_runs(&etcd, &runs, Path::new("/srv")).unwrap()
    };
    let of_both = read(&["run1", "run2"]);
    assert_eq!(of_both.recovered.records().collect::<Vec<_>>(), records[1..]);
    second.note_losses(Path::new("/srv"), &of_both).unwrap();
    let of_second = read(&["run2"]);
    assert_eq!(of_second.lost, [client]);
    assert_eq!(of_second.recovered.records().collect::<Vec<_>>(), records[1..]);
}

#[test]
fn a_member_that_does_not_answer_is_passed_over() {
    let Some(server) = EtcdServer::start() else { return };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let etcd =
        Etcd::new(&[silent.clone(), server.address()], None, Duration::from_secs(2)).unwrap();
    assert_eq!(etcd.get(b"x").unwrap(), None);
    let alone = Etcd::new(&[silent], None, Duration::from_secs(2)).unwrap();
    assert!(matches!(alone.get(b"x"), Err(EtcdError::Silent { .. })));
}

#[test]
fn ranges_longer_than_an_answer_are_read_whole() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = connect(&server);
    let (_, records) = join(&etcd, 60);
    let key = |number: u32| format!("many/{number:05}").into_bytes();
    records.change((0..4_500).map(|it| Op::put(key(it), Vec::new())).collect()).unwrap();
    let all = etcd.range(b"many/").unwrap();
    assert_eq!((all.len(), &all[4_499].key), (4_500, &key(4_499)));
}

#[test]
fn pages_that_are_longer_than_an_answer_are_made_shorter() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = connect(&server);
    let value = vec![7; 500_000];
    for number in 0..20 {
        let put = Op::put(format!("long/{number:02}").into_bytes(), value.clone());
        etcd.transact(&[], &[put]).unwrap();
    }
    assert_eq!(etcd.range(b"long/").unwrap().len(), 20);
}

/// A change whose answer is late may be made after the store has given it up.
#[test]
fn a_change_that_was_given_up_is_not_made_after_later_ones() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = connect(&server);
    let (_, records) = join(&etcd, 60);
    let put = |value: &[u8]| Op::put(b"x".to_vec(), value.to_vec());
    records.change(vec![put(b"1")]).unwrap();
    let turn = || etcd.get(b"/comity/records/run1/turn").unwrap().unwrap().changed;
    // This is what a change compares that is under way.
    let late = [Compare::Changed(b"/comity/records/run1/turn".to_vec(), turn())];
    records.change(vec![put(b"2")]).unwrap();
    assert!(!etcd.transact(&late, &[put(b"1")]).unwrap());
    // A late change that is made takes a turn, and the next change is made nevertheless.
    etcd.transact(&[], &[Op::put(b"/comity/records/run1/turn".to_vec(), Vec::new())]).unwrap();
    records.change(vec![put(b"3")]).unwrap();
    assert_eq!(etcd.get(b"x").unwrap().unwrap().value, b"3");
}

#[test]
fn records_are_stored_when_etcd_answers_again_in_time() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = Arc::new(Etcd::new(&[server.address()], None, Duration::from_secs(2)).unwrap());
    join(&etcd, 60);
    let records = first_as(&etcd, "run1");
    server.freeze();
    std::thread::scope(|scope| {
        let stored = scope.spawn(|| {
            let record = Record::Client(recorded(1), None);
            records.open(1).medium.apply(&common::server(), &[record])
        });
        std::thread::sleep(Duration::from_secs(3));
        server.thaw();
        stored.join().unwrap().unwrap();
    });
    assert_eq!(stored(&etcd).len(), 1);
}

#[test]
fn an_address_that_is_none_is_refused() {
    for address in
        ["127.0.0.1:2379", "ftp://a:1", "https://a b:1", "http://a", "http://:1", "http://a:b"]
    {
        let refused = Etcd::new(&[address.to_owned()], None, PATIENCE).err();
        assert!(matches!(refused, Some(EtcdError::Address(_))), "{address}");
    }
    let refused = Etcd::new(&["https://a:1".to_owned()], None, PATIENCE).err();
    assert!(matches!(refused, Some(EtcdError::Tls(_))), "there are no settings of TLS");
}

#[test]
fn changes_are_told_with_the_number_of_keys_so_that_removals_are_noticed() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = connect(&server);
    let put = |key: &[u8]| etcd.transact_at(&[], &[Op::put(key.to_vec(), b"1".to_vec())]);
    put(b"a/1").unwrap();
    let second = put(b"a/2").unwrap().unwrap();
    let last = put(b"b/1").unwrap().unwrap();
    let glance = etcd.glance(b"a/2", b"a/").unwrap();
    assert_eq!((glance.changed, glance.count, glance.revision), (second, 2, last));
    let prefixes = [b"a/".to_vec(), b"b/".to_vec()];
    let read = |since| {
        let (changes, revision) = etcd.changes(&prefixes, since).unwrap();
        let of = |range: &RangeChanges| {
            (range.entries.iter().map(|it| it.key.clone()).collect::<Vec<_>>(), range.count)
        };
        (changes.iter().map(of).collect::<Vec<_>>(), revision)
    };
    let changes = vec![(vec![b"a/2".to_vec()], 2), (vec![b"b/1".to_vec()], 1)];
    assert_eq!(read(second), (changes, last));
    etcd.transact(&[], &[Op::Delete(b"a/1".to_vec())]).unwrap();
    assert_eq!(read(last + 1), (vec![(vec![], 1), (vec![], 1)], last + 1));
    assert_eq!(etcd.glance(b"a/1", b"c/").unwrap().changed, 0, "the key does not exist");
}
