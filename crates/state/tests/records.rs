//! Records of clients: the set that they form, and the reclaims that it allows after a restart.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use comity_state::{
    ClientProtocol, Engine, FileKey, Identity, Origin, OriginChannel, Principal, Record,
    RecordedClient, Recovered, Settings, Verifier,
};
use comity_vfs::Handle;
use proptest::prelude::*;

const PROTOCOLS: [ClientProtocol; 3] =
    [ClientProtocol::Setclientid, ClientProtocol::ExchangeId, ClientProtocol::Nlm];

fn file(number: u8) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[number]).unwrap() }
}

fn client(protocol: usize, name: u8) -> RecordedClient {
    RecordedClient {
        protocol: PROTOCOLS[protocol],
        channel: OriginChannel::Plain,
        id: [name].into(),
    }
}

fn identity(life: u8) -> Identity {
    let origin = Origin::from_bytes([life; 16]);
    Identity { principal: Principal(0), origin, verifier: Verifier([life; 8]) }
}

/// A record: the index of its protocol, the name of its client, and its kind.
#[derive(Debug, Clone)]
enum Step {
    Client { protocol: usize, name: u8, life: u8 },
    Forget { protocol: usize, name: u8 },
    Arrived { protocol: usize, name: u8, life: u8 },
    Revoked { protocol: usize, name: u8, file: u8 },
    Unrevoked { protocol: usize, name: u8, file: u8 },
    RevocationsKnown { protocol: usize, name: u8 },
    Size { file: u8, is_known: bool },
}

impl Step {
    fn record(&self) -> Record {
        match *self {
            Self::Client { protocol, name, life } => {
                Record::Client(client(protocol, name), Some(identity(life)))
            }
            Self::Arrived { protocol, name, life } => {
                Record::Arrived(client(protocol, name), Some(identity(life)))
            }
            Self::Unrevoked { protocol, name, file: number } => {
                Record::Unrevoked(client(protocol, name), file(number))
            }
            Self::RevocationsKnown { protocol, name } => {
                Record::RevocationsKnown(client(protocol, name))
            }
            Self::Forget { protocol, name } => Record::Forget(client(protocol, name)),
            Self::Revoked { protocol, name, file: number } => {
                Record::Revoked(client(protocol, name), file(number))
            }
            Self::Size { file: number, is_known: false } => Record::SizeOpen(file(number)),
            Self::Size { file: number, is_known: true } => Record::SizeKnown(file(number)),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let named = || (0..PROTOCOLS.len(), 0..3_u8);
    prop_oneof![
        3 => (named(), 0..2_u8)
            .prop_map(|((protocol, name), life)| Step::Client { protocol, name, life }),
        2 => (named(), 0..2_u8)
            .prop_map(|((protocol, name), life)| Step::Arrived { protocol, name, life }),
        2 => (named(), 0..3_u8)
            .prop_map(|((protocol, name), file)| Step::Unrevoked { protocol, name, file }),
        1 => named().prop_map(|(protocol, name)| Step::RevocationsKnown { protocol, name }),
        1 => named().prop_map(|(protocol, name)| Step::Forget { protocol, name }),
        3 => (named(), 0..3_u8)
            .prop_map(|((protocol, name), file)| Step::Revoked { protocol, name, file }),
        2 => (0..3_u8, any::<bool>()).prop_map(|(file, is_known)| Step::Size { file, is_known }),
    ]
}

/// A simple model of the set: the boot of each client, and the files that it has lost; and the
/// files whose sizes may be unknown.
#[derive(Default)]
struct Model {
    clients: BTreeMap<(usize, u8), (u8, BTreeSet<u8>)>,
    sizes: BTreeSet<u8>,
}

fn apply(model: &mut Model, step: &Step) {
    match *step {
        Step::Client { protocol, name, life } => {
            let known = model.clients.entry((protocol, name)).or_default();
            known.0 = life;
            // Only the record of a client with sessions says that the client knows its losses.
            if PROTOCOLS[protocol] == ClientProtocol::ExchangeId {
                known.1.clear();
            }
        }
        Step::Arrived { protocol, name, life } => {
            model.clients.entry((protocol, name)).or_default().0 = life;
        }
        Step::Unrevoked { protocol, name, file } => {
            if let Some(known) = model.clients.get_mut(&(protocol, name)) {
                known.1.remove(&file);
            }
        }
        Step::RevocationsKnown { protocol, name } => {
            if let Some(known) = model.clients.get_mut(&(protocol, name)) {
                known.1.clear();
            }
        }
        Step::Forget { protocol, name } => drop(model.clients.remove(&(protocol, name))),
        Step::Revoked { protocol, name, file } => {
            if let Some(known) = model.clients.get_mut(&(protocol, name)) {
                known.1.insert(file);
            }
        }
        Step::Size { file, is_known: false } => drop(model.sizes.insert(file)),
        Step::Size { file, is_known: true } => drop(model.sizes.remove(&file)),
    }
}

/// The records of a set, sorted so that they can be compared.
fn sorted(records: impl Iterator<Item = Record>) -> Vec<String> {
    let mut records: Vec<String> = records.map(|record| format!("{record:?}")).collect();
    records.sort_unstable();
    records
}

fn expected(model: &Model) -> Vec<String> {
    let clients = model.clients.iter().flat_map(|(&(protocol, name), (life, lost))| {
        let known = Step::Client { protocol, name, life: *life }.record();
        let lost = lost.iter().map(move |&file| Step::Revoked { protocol, name, file }.record());
        std::iter::once(known).chain(lost)
    });
    let sizes = model.sizes.iter().map(|&file| Step::Size { file, is_known: false }.record());
    sorted(clients.chain(sizes))
}

proptest! {
    #[test]
    fn records_form_the_set_of_the_model_and_the_set_writes_equal_records(
        steps in proptest::collection::vec(step(), 0..40),
    ) {
        let (mut recovered, mut model) = (Recovered::new(), Model::default());
        for step in &steps {
            recovered.apply(step.record());
            apply(&mut model, step);
        }
        prop_assert_eq!(sorted(recovered.records()), expected(&model));
        prop_assert_eq!(recovered.is_empty(), model.clients.is_empty());
        let mut again = Recovered::new();
        recovered.records().for_each(|record| again.apply(record));
        prop_assert_eq!(sorted(again.records()), sorted(recovered.records()));
        let hosts: BTreeSet<Vec<u8>> = recovered.hosts().map(<[u8]>::to_vec).collect();
        let is_host = |(protocol, _): &&(usize, u8)| PROTOCOLS[*protocol] == ClientProtocol::Nlm;
        let named = model.clients.keys().filter(is_host);
        let named: BTreeSet<Vec<u8>> = named.map(|(_, name)| vec![*name]).collect();
        prop_assert_eq!(hosts, named);
    }

    #[test]
    fn an_engine_begins_in_grace_if_a_client_may_reclaim_and_ends_it_in_time(
        steps in proptest::collection::vec(step(), 0..40),
    ) {
        let (mut recovered, mut model) = (Recovered::new(), Model::default());
        for step in &steps {
            recovered.apply(step.record());
            apply(&mut model, step);
        }
        let (now, settings) = (Duration::from_secs(5), Settings::new(1, [7; 16]));
        let settings = Settings { durable: true, ..settings };
        let engine = Engine::new(now, settings, recovered);
        prop_assert_eq!(engine.is_in_grace(), !model.clients.is_empty());
        let is_v4 = |(protocol, _): &(usize, u8)| PROTOCOLS[*protocol] != ClientProtocol::Nlm;
        prop_assert_eq!(engine.awaits_opens(1), model.clients.keys().any(is_v4));
        let left = if model.clients.is_empty() { Duration::ZERO } else { settings.grace };
        prop_assert_eq!(engine.grace_left(now), left);
        engine.tick(now + settings.grace);
        prop_assert!(!engine.is_in_grace());
        // No client has come back, so all of them lose their claims.
        let mut records = Vec::new();
        let mark = engine.poll_records(&mut records);
        engine.stored(mark);
        let forget = |&(protocol, name): &(usize, u8)| Step::Forget { protocol, name }.record();
        let gone = model.clients.keys().map(forget);
        prop_assert_eq!(sorted(records.into_iter()), sorted(gone));
        prop_assert_eq!(engine.unstored(), None);
    }
}

#[test]
fn the_record_of_a_lost_file_of_an_unknown_client_adds_no_client() {
    let mut recovered = Recovered::new();
    recovered.apply(Step::Revoked { protocol: 1, name: 1, file: 1 }.record());
    assert!(recovered.is_empty());
}
