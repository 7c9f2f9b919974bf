//! The memory of a server with 1,000 clients, 100,000 opens and 100,000 delegations.
#![allow(clippy::unwrap_used, clippy::panic)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    Caller, ChannelAttrs, Claim, Client, ClientOwner, Delegation, DelegationWish, Engine,
    ExchangeId, FileKey, Open, Origin, Principal, Recovered, Settings, Share, Verifier,
};
use comity_vfs::Handle;
use introduction::session_of;

const CLIENTS: usize = 1_000;
const FILES: usize = 100_000;

/// Highest memory in bytes of a client with a session that has as many slots as Linux asks for, of
/// an open of a file that no other client has, and of a delegation.
const CLIENT_BYTES_MAX: usize = 29 << 8;
const OPEN_BYTES_MAX: usize = 450;
const DELEGATION_BYTES_MAX: usize = 450;

const NOW: Duration = Duration::from_secs(1);

#[test]
fn opens_and_delegations_take_bounded_memory() {
    let engine = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
    let mut last = resident_bytes();
    let mut grown = |what: &str, count: usize, most: usize| {
        let now = resident_bytes();
        let each = now.saturating_sub(last) / count;
        last = now;
        println!("{what}: {each} bytes each, at most {most}");
        assert!(each <= most, "{what}: {each} bytes each");
    };
    let clients: Vec<Arc<Client>> = (0..CLIENTS).map(|number| client(&engine, number)).collect();
    grown("clients with sessions", CLIENTS, CLIENT_BYTES_MAX);
    let granted = open_all(&engine, &clients, DelegationWish::None);
    assert_eq!(granted, 0);
    grown("opens", FILES, OPEN_BYTES_MAX);
    let granted = open_all(&engine, &clients, DelegationWish::Read);
    assert_eq!(granted, FILES, "a delegation was refused");
    grown("delegations", FILES, DELEGATION_BYTES_MAX);
    let census = engine.census();
    let counts = (census.clients, census.files, census.states, census.delegations);
    assert_eq!(counts, (CLIENTS, FILES, 2 * FILES, FILES));
}

/// Opens each file by one client; returns the number of delegations.
fn open_all(engine: &Engine, clients: &[Arc<Client>], wish: DelegationWish) -> usize {
    let mut granted = 0;
    for number in 0..FILES {
        let (client, file) = (&clients[number % CLIENTS], key(number));
        let (share, claim) = (Share::access(Share::READ), Claim::New);
        let open = Open {
            client,
            caller: caller(number % CLIENTS),
            owner: b"a process",
            file,
            share,
            claim,
            wish,
            user: None,
            grantee: None,
            empties: false,
        };
        let opened = engine.open(NOW, &open).unwrap();
        granted += usize::from(matches!(opened.delegation, Delegation::Granted { .. }));
    }
    granted
}

const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 1 << 20,
    response_bytes_max: 1 << 20,
    response_cached_bytes_max: 4096,
    operations_max: 16,
    requests_max: 64,
};

fn client(engine: &Engine, number: usize) -> Arc<Client> {
    let id = format!("Linux NFSv4.1 host-{number}.example.org").into_bytes().into();
    let owner = ClientOwner { verifier: Verifier([1; 8]), id };
    let caller = caller(number);
    let args = ExchangeId { owner, caller, update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    let session = session_of(&known, (caller, number as u64), ATTRS);
    let session = engine.create_session(NOW, &session).unwrap().session;
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.callbacks_work(&client);
    engine.reclaim_complete(NOW, &client, caller).unwrap();
    client
}

/// Each client has an address of its own.
fn caller(number: usize) -> Caller {
    let origin = Origin::from_bytes(((number as u128) << 64).to_be_bytes());
    Caller { principal: Principal::default(), origin }
}

/// The key of a file whose handle has the length of those of ext4.
fn key(number: usize) -> FileKey {
    let mut bytes = [7; 20];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    FileKey { volume: 1, export: 1, handle: Handle::new(&bytes).unwrap() }
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
