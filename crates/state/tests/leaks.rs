//! State leaves nothing behind when it ends in any way.
#![allow(clippy::unwrap_used, clippy::panic)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, CallbackAddress, Caller, ChannelAttrs, Claim, Client, ClientOwner, ClientProtocol,
    ConnectionId, DelegatedAttributes, Delegation, DelegationWish, Effect, Engine, Error,
    ExchangeId, FileKey, HostLock, Identity, Lock, LockRefusal, LockRequestKind, LockType, Locker,
    Open, Opened, Origin, OriginChannel, Principal, Record, RecordedClient, Recovered, Sender,
    SessionId, Setclientid, Settings, Share, Stateid, Verifier,
};
use comity_vfs::Handle;
use introduction::session_of;

const NOW: Duration = Duration::from_secs(1000);
const SECOND: Duration = Duration::from_secs(1);

const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 1 << 20,
    response_bytes_max: 1 << 20,
    response_cached_bytes_max: 4096,
    operations_max: 16,
    requests_max: 4,
};

fn engine(change: impl FnOnce(&mut Settings)) -> Engine {
    let mut settings = Settings::new(1, [7; 16]);
    change(&mut settings);
    Engine::new(NOW, settings, Recovered::new())
}

fn owner(name: &str) -> ClientOwner {
    ClientOwner { verifier: Verifier([1; 8]), id: name.as_bytes().into() }
}

/// Each client has an address of its own, in a network (the first eight bytes) of its own.
fn caller(name: &str) -> Caller {
    let mut place = [0; 16];
    name.bytes().rev().zip(&mut place).for_each(|(letter, place)| *place = letter);
    Caller { principal: Principal(0), origin: Origin::from_bytes(place) }
}

/// A client with a session that has ended its reclaim.
fn client(engine: &Engine, now: Duration, name: &str) -> Arc<Client> {
    let session = session(engine, now, name).unwrap();
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.callbacks_work(&client);
    let complete = engine.reclaim_complete(now, &client, caller(name));
    assert!(matches!(complete, Ok(()) | Err(Error::CompleteAlready)));
    client
}

fn caller_of(client: &Client) -> Caller {
    caller(std::str::from_utf8(client.owner()).unwrap())
}

/// A session of a client.
fn session(engine: &Engine, now: Duration, name: &str) -> Result<SessionId, Error> {
    let args = ExchangeId { owner: owner(name), caller: caller(name), update: false };
    let known = engine.exchange_id(now, args).unwrap();
    let session = session_of(&known, (caller(name), 1), ATTRS);
    engine.create_session(now, &session).map(|made| made.session)
}

fn file(number: u8) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[number]).unwrap() }
}

/// Opens a file for reading and writing, with a delegation only if `wish` asks for one.
fn open(
    engine: &Engine,
    client: &Arc<Client>,
    (owner, number): (&str, u8),
    wish: DelegationWish,
) -> Result<Opened, Error> {
    let (owner, file) = (owner.as_bytes(), file(number));
    let (share, claim, caller) = (Share::access(Share::BOTH), Claim::New, caller_of(client));
    let (user, grantee, empties) = (None, None, false);
    engine.open(
        NOW,
        &Open { client, caller, owner, file, share, claim, wish, user, grantee, empties },
    )
}

fn opened(engine: &Engine, client: &Arc<Client>, (owner, number): (&str, u8)) -> Stateid {
    open(engine, client, (owner, number), DelegationWish::None).unwrap().stateid
}

fn lock<'a>(open: Stateid, owner: &'a str, number: u8) -> Lock<'a> {
    Lock {
        file: file(number),
        range: ByteRange { first: 0, last: 9 },
        kind: LockType::Write,
        reclaim: false,
        wait: false,
        locker: Locker::New { open, owner: owner.as_bytes(), seqid: 1 },
    }
}

fn sender(now: Duration, client: &Arc<Client>) -> Sender<'_> {
    Sender { now, client: Some(client), caller: caller_of(client) }
}

/// Each process of a Linux client locks as an owner of its own, and frees its stateid at the end.
#[test]
fn owners_whose_lock_stateid_is_freed_are_forgotten() {
    let engine = engine(|_| {});
    let client = client(&engine, NOW, "a");
    let open = opened(&engine, &client, ("o", 1));
    for process in 0..300 {
        let name = format!("process {process}");
        let sender = sender(NOW, &client);
        let held = engine.lock(sender, &lock(open, &name, 1)).unwrap();
        let held = engine.unlock(sender, &held, (&file(1), ByteRange::ALL)).unwrap();
        engine.free_stateid(sender, &held).unwrap();
    }
    let census = engine.census();
    assert_eq!((census.owners, census.states), (1, 1), "the open and its owner");
}

/// A lock that is granted but cannot be stored would have no owner.
#[test]
fn a_lock_that_cannot_be_stored_is_not_taken() {
    let engine = engine(|settings| settings.limits.states_per_client = 2);
    let (one, two) = (client(&engine, NOW, "a"), client(&engine, NOW, "b"));
    let open = opened(&engine, &one, ("o", 1));
    opened(&engine, &one, ("o", 2));
    let refused = engine.lock(sender(NOW, &one), &lock(open, "l", 1));
    assert_eq!(refused, Err(LockRefusal::Error(Error::Resource)));
    assert_eq!(engine.census().owners, 1, "the refused lock left an owner behind");
    engine.evict(NOW, &one);
    let open = opened(&engine, &two, ("p", 1));
    assert!(engine.lock(sender(NOW, &two), &lock(open, "m", 1)).is_ok());
}

#[test]
fn a_waiter_above_the_limits_leaves_nothing_behind() {
    let engine = engine(|settings| settings.limits.locks_per_file = 1);
    let one = client(&engine, NOW, "a");
    let open = opened(&engine, &one, ("o", 1));
    engine.lock(sender(NOW, &one), &lock(open, "l", 1)).unwrap();
    let known = engine.census();
    let wish = Lock { wait: true, ..lock(open, "m", 1) };
    let refused = engine.lock(sender(NOW, &one), &wish);
    assert_eq!(refused, Err(LockRefusal::Error(Error::Resource)));
    assert_eq!(engine.census(), known);
}

/// The whole file is locked, and then bytes of it are freed one by one, each of which makes one
/// more range.
#[test]
fn bytes_freed_one_by_one_make_no_more_ranges_than_the_limit() {
    let engine = engine(|settings| settings.limits.locks_per_file = 12);
    let (one, host) =
        (client(&engine, NOW, "a"), engine.host(NOW, b"one", Origin::default()).unwrap());
    let byte = |number: u64| ByteRange { first: 2 * number, last: 2 * number };
    let open = opened(&engine, &one, ("o", 1));
    let whole = Lock { range: ByteRange::ALL, ..lock(open, "l", 1) };
    let held = engine.lock(sender(NOW, &one), &whole).unwrap();
    let host_lock = |range| HostLock { owner: b"l", file: file(2), range, kind: LockType::Write };
    engine.lock_host(NOW, &host, &host_lock(ByteRange::ALL), LockRequestKind::NonBlocking).unwrap();
    for number in 1..20 {
        let expected = if number < 12 { Ok(()) } else { Err(Error::Resource) };
        let any = Stateid { seqid: 0, ..held };
        let freed = engine.unlock(sender(NOW, &one), &any, (&file(1), byte(number)));
        assert_eq!(freed.map(drop), expected, "{number}");
        let freed = engine.unlock_host(NOW, &host, &host_lock(byte(number)));
        assert_eq!(freed, expected, "{number}");
    }
    for range in [ByteRange { first: 0, last: 9 }, ByteRange { first: 99, last: u64::MAX }] {
        let any = Stateid { seqid: 0, ..held };
        engine.unlock(sender(NOW, &one), &any, (&file(1), range)).unwrap();
        engine.unlock_host(NOW, &host, &host_lock(range)).unwrap();
    }
}

#[test]
fn owners_that_gave_up_waiting_do_not_pile_up() {
    let engine = engine(|_| {});
    let (one, two) = (client(&engine, NOW, "a"), client(&engine, NOW, "b"));
    let open = opened(&engine, &one, ("o", 1));
    engine.lock(sender(NOW, &one), &lock(open, "l", 1)).unwrap();
    let open = opened(&engine, &two, ("p", 1));
    for process in 0..5000_u32 {
        let (name, now) = (format!("process {process}"), NOW + SECOND * process);
        let wish = Lock { wait: true, ..lock(open, &name, 1) };
        let refused = engine.lock(sender(now, &two), &wish);
        assert!(matches!(refused, Err(LockRefusal::Denied { .. })), "{refused:?}");
        for client in [&one, &two] {
            let session = client.sessions()[0];
            let both = (ConnectionId(1), comity_state::Direction::Both);
            engine.bind_connection(now, &session, both, caller_of(client)).unwrap();
        }
        while engine.poll_effect().is_some() {}
        engine.tick(now);
    }
    let owners = engine.census().owners;
    assert!(owners < 300, "{owners} owners");
}

#[test]
fn a_waiting_owner_keeps_its_place_when_others_come() {
    let engine = engine(|_| {});
    let (one, two) = (client(&engine, NOW, "a"), client(&engine, NOW, "b"));
    let open = opened(&engine, &one, ("o", 1));
    let held = engine.lock(sender(NOW, &one), &lock(open, "l", 1)).unwrap();
    let open = opened(&engine, &two, ("p", 1));
    for process in 0..500 {
        let name = format!("process {process}");
        let wish = Lock { wait: true, ..lock(open, &name, 1) };
        engine.lock(sender(NOW + SECOND * 30, &two), &wish).unwrap_err();
    }
    while engine.poll_effect().is_some() {}
    engine.unlock(sender(NOW + SECOND * 31, &one), &held, (&file(1), ByteRange::ALL)).unwrap();
    let Some(Effect::NotifyLock { owner, .. }) = engine.poll_effect() else {
        panic!("no client is notified");
    };
    assert_eq!(&*owner, b"process 0");
}

#[test]
fn a_refused_request_of_a_host_leaves_nothing_behind() {
    let engine = engine(|settings| settings.limits.locks_per_file = 1);
    let (one, two) = (
        engine.host(NOW, b"one", Origin::default()).unwrap(),
        engine.host(NOW, b"two", Origin::default()).unwrap(),
    );
    let share = |host, owner: &str, access, deny| {
        let (owner, share) = (owner.as_bytes(), Share { access, deny });
        engine.share_host(NOW, host, (owner, file(1)), share, LockRequestKind::NonBlocking)
    };
    share(&one, "o", Share::READ, Share::WRITE).unwrap();
    fn wish(owner: &[u8]) -> HostLock<'_> {
        HostLock { owner, file: file(2), range: ByteRange::ALL, kind: LockType::Read }
    }
    engine.lock_host(NOW, &one, &wish(b"o"), LockRequestKind::NonBlocking).unwrap();
    for process in 0..10 {
        let name = format!("process {process}");
        assert_eq!(share(&two, &name, Share::WRITE, 0), Err(Error::ShareDenied));
        let refused =
            engine.lock_host(NOW, &two, &wish(name.as_bytes()), LockRequestKind::NonBlocking);
        assert_eq!(refused, Err(LockRefusal::Error(Error::Resource)));
    }
    let census = engine.census();
    assert_eq!((census.states, census.owners, census.files), (2, 2, 2));
}

#[test]
fn a_share_of_an_expired_client_gives_way_to_a_host() {
    let engine = engine(|_| {});
    let gone = client(&engine, NOW, "a");
    let denying = Share { access: Share::READ, deny: Share::WRITE };
    let (claim, wish) = (Claim::New, DelegationWish::None);
    let asked = Open {
        client: &gone,
        caller: caller_of(&gone),
        owner: b"o",
        file: file(1),
        share: denying,
        claim,
        wish,
        user: None,
        grantee: None,
        empties: false,
    };
    engine.open(NOW, &asked).unwrap();
    let later = NOW + engine.settings().lease;
    let host = engine.host(later, b"one", Origin::default()).unwrap();
    let share = Share::access(Share::WRITE);
    engine.share_host(later, &host, (b"p", file(1)), share, LockRequestKind::NonBlocking).unwrap();
}

/// A client of minor version 0 has no operation that frees it.
#[test]
fn a_delegation_revoked_from_a_client_without_sessions_leaves_nothing_behind() {
    let engine = engine(|_| {});
    let args = Setclientid {
        owner: owner("a"),
        caller: caller("a"),
        callback: CallbackAddress::default(),
    };
    let known = engine.setclientid(NOW, args).unwrap();
    engine.setclientid_confirm(NOW, (known.clientid, known.confirm), caller("a")).unwrap();
    let old = engine.client_of(known.clientid, caller("a")).unwrap();
    assert_eq!(old.protocol(), ClientProtocol::Setclientid);
    engine.callbacks_work(&old);
    let by_itself = Sender { now: NOW, client: None, caller: caller("a") };
    let given = open(&engine, &old, ("o", 2), DelegationWish::NoPreference).unwrap();
    let Delegation::Granted { stateid, .. } = given.delegation else { panic!("{given:?}") };
    let other = client(&engine, NOW, "b");
    assert_eq!(open(&engine, &other, ("p", 2), DelegationWish::None), Err(Error::Delay));
    engine.recall_sent(NOW, &old, &stateid);
    let states = engine.census().states;
    let later = NOW + engine.settings().lease;
    engine.renew(later - SECOND, known.clientid, caller("a")).unwrap();
    engine.tick(later);
    assert_eq!(engine.totals().delegations_revoked, 1);
    assert_eq!(engine.census().states, states - 1);
    assert_eq!(engine.delegreturn((by_itself, &file(2)), &stateid), Err(Error::BadStateid));
}

/// A server that is flooded with clients that never confirm themselves still admits others.
#[test]
fn a_client_that_never_confirms_makes_room() {
    let engine = engine(|settings| settings.limits.clients = 4);
    let staying = client(&engine, NOW, "stays");
    for number in 0..10 {
        let name = format!("passer-by {number}");
        let args = ExchangeId { owner: owner(&name), caller: caller(&name), update: false };
        engine.exchange_id(NOW, args).unwrap();
    }
    client(&engine, NOW, "new");
    assert!(engine.client_by_id(staying.id()).is_some());
    assert_eq!(engine.census().clients, 4);
}

/// A search through all clients for each introduction of a flood would delay all other callers.
#[test]
fn clients_of_a_flood_are_removed_some_at_a_time() {
    let engine = engine(|settings| settings.limits.clients = 1024);
    let staying = client(&engine, NOW, "stays");
    let meet = |number: u32| {
        let name = format!("stranger {number}");
        let args = ExchangeId { owner: owner(&name), caller: caller(&name), update: false };
        engine.exchange_id(NOW + SECOND * number / 1000, args).unwrap().clientid
    };
    let strangers: Vec<_> = (1..1024).map(meet).collect();
    assert_eq!(engine.census().clients, 1024);
    meet(1024);
    assert_eq!(engine.census().clients, 1024 - 4 + 1);
    let (gone, left) = strangers.split_at(4);
    assert!(gone.iter().all(|id| engine.client_by_id(*id).is_none()), "the oldest");
    assert!(left.iter().all(|id| engine.client_by_id(*id).is_some()));
    assert!(engine.client_by_id(staying.id()).is_some());
}

/// Hosts of NLM have no lease, and any sender of a datagram can become one.
#[test]
fn hosts_without_state_make_room_for_others() {
    let engine = engine(|settings| settings.limits.clients = 4);
    let (staying, holder) =
        (client(&engine, NOW, "stays"), engine.host(NOW, b"holder", Origin::default()).unwrap());
    let (owner, file, range, kind) = (&b"o"[..], file(1), ByteRange::ALL, LockType::Write);
    let held = HostLock { owner, file, range, kind };
    engine.lock_host(NOW, &holder, &held, LockRequestKind::NonBlocking).unwrap();
    for number in 0..10_u8 {
        engine.host(NOW, &[number], Origin::from_bytes([number; 16])).unwrap();
    }
    client(&engine, NOW, "new");
    for client in [staying, holder] {
        assert!(engine.client_by_id(client.id()).is_some(), "{client:?}");
    }
    assert_eq!(engine.census().clients, 4);
}

fn recovered(engine: &Engine, mut store: Recovered) -> Recovered {
    let mut records = Vec::new();
    let mark = engine.poll_records(&mut records);
    records.into_iter().for_each(|record| store.apply(record));
    engine.stored(mark);
    store
}

/// A client that has freed revoked state knows of its loss, so that it may reclaim state of that
/// file which it got since.
#[test]
fn state_acquired_since_a_revocation_may_be_reclaimed() {
    let engine = engine(|settings| settings.durable = true);
    let (one, two) = (client(&engine, NOW, "a"), client(&engine, NOW, "b"));
    let given = open(&engine, &one, ("o", 1), DelegationWish::NoPreference).unwrap();
    let Delegation::Granted { stateid, .. } = given.delegation else { panic!("{given:?}") };
    assert_eq!(open(&engine, &two, ("p", 1), DelegationWish::None), Err(Error::Delay));
    engine.recall_sent(NOW, &one, &stateid);
    let later = NOW + engine.settings().lease;
    engine
        .bind_connection(
            later,
            &one.sessions()[0],
            (ConnectionId(1), comity_state::Direction::Both),
            caller("a"),
        )
        .unwrap();
    engine.tick(later);
    let revoked =
        |store: &Recovered| store.records().any(|record| matches!(record, Record::Revoked(..)));
    let store = recovered(&engine, Recovered::new());
    assert!(revoked(&store));
    assert_eq!(engine.free_stateid(sender(later, &one), &stateid), Ok(()));
    assert!(engine.unstored().is_some(), "the new state need not be stored");
    let store = recovered(&engine, store);
    assert!(!revoked(&store));
    assert!(store.records().any(|record| matches!(record, Record::Client(..))));
}

/// Thousands of clients that come back one after the other may take longer than a lease.
#[test]
fn no_client_is_forgotten_in_the_grace_period() {
    let mut store = Recovered::new();
    for id in [&b"a"[..], b"late"] {
        let Caller { principal, origin } = caller(std::str::from_utf8(id).unwrap());
        let identity = Identity { principal, origin, verifier: Verifier([1; 8]) };
        let client = RecordedClient {
            protocol: ClientProtocol::ExchangeId,
            channel: OriginChannel::Plain,
            id: id.into(),
        };
        store.apply(Record::Client(client, Some(identity)));
    }
    let lease = SECOND * 20;
    let settings = Settings { lease, grace: lease * 3, ..Settings::new(2, [7; 16]) };
    let engine = Engine::new(NOW, settings, store);
    let one = client(&engine, NOW, "a");
    engine.tick(NOW + lease * 2);
    assert!(engine.is_in_grace());
    let args = ExchangeId { owner: owner("a"), caller: caller("a"), update: false };
    let known = engine.exchange_id(NOW + lease * 2, args).unwrap();
    assert_eq!((known.clientid, known.confirmed), (one.id(), true));
    let again = engine.reclaim_complete(NOW + lease * 2, &one, caller("a"));
    assert_eq!(again, Err(Error::CompleteAlready));
    engine.tick(NOW + lease * 4);
    assert!(!engine.is_in_grace());
}

/// A client that has stopped calling has a delegation of a file.
fn silent_holder(engine: &Engine) -> Duration {
    let gone = client(engine, NOW, "gone");
    let given = open(engine, &gone, ("o", 1), DelegationWish::Write).unwrap();
    assert!(matches!(given.delegation, Delegation::Granted { .. }), "{given:?}");
    NOW + engine.settings().lease * 2
}

#[test]
fn asking_a_silent_holder_keeps_nothing_of_its_file() {
    let engine = engine(|_| {});
    let later = silent_holder(&engine);
    assert_eq!(engine.delegated_attributes(later, None, &file(1), 7), DelegatedAttributes::OnDisk);
    engine.tick(later);
    assert_eq!((engine.census().clients, engine.census().files), (0, 0));
}

#[test]
fn breaking_a_delegation_of_a_silent_client_keeps_nothing_of_its_file() {
    let engine = engine(|_| {});
    let later = silent_holder(&engine);
    engine.break_delegations(later, None, &file(1), Share::access(Share::BOTH)).unwrap();
    engine.tick(later);
    assert_eq!((engine.census().clients, engine.census().files), (0, 0));
}

#[test]
fn a_file_is_forgotten_when_a_host_releases_its_last_share() {
    let engine = engine(|_| {});
    let host = engine.host(NOW, b"one", Origin::default()).unwrap();
    let name = (&b"o"[..], file(1));
    engine
        .share_host(NOW, &host, name, Share::access(Share::READ), LockRequestKind::NonBlocking)
        .unwrap();
    engine.unshare_host(NOW, &host, name);
    engine.tick(NOW);
    assert_eq!((engine.census().states, engine.census().files), (0, 0));
}

/// An expired client keeps its state for a day if no other client needs it, but others need the
/// memory for replies.
#[test]
fn an_expired_client_keeps_no_reply_memory_that_others_need() {
    // The limit has room for four slots of a little more than 4 KB, but not for eight.
    let engine = engine(|settings| settings.limits.reply_cache_bytes = 20_000);
    let gone = client(&engine, NOW, "gone");
    opened(&engine, &gone, ("o", 1));
    let lease = engine.settings().lease;
    engine.tick(NOW + lease - SECOND);
    let refused = session(&engine, NOW + lease - SECOND, "new");
    assert_eq!(refused, Err(Error::Delay), "the lease of the other client has not expired");
    engine.tick(NOW + lease);
    client(&engine, NOW + lease, "new");
    assert_eq!(engine.census().states, 1, "the open of the expired client has ended");
    assert!(gone.sessions().is_empty());
    engine.tick(NOW + lease * 3);
    let back = session(&engine, NOW + lease * 3, "gone").expect("there is room again");
    assert_eq!(engine.session(&back).unwrap().client().id(), gone.id());
}

/// A client that never frees revoked state must not keep its file in the table, all of which is
/// visited each second.
#[test]
fn a_revoked_state_that_is_not_freed_keeps_no_file() {
    let engine = engine(|_| {});
    let holder = client(&engine, NOW, "holder");
    let given = open(&engine, &holder, ("o", 1), DelegationWish::Write).unwrap();
    let Delegation::Granted { stateid, .. } = given.delegation else { panic!("{given:?}") };
    engine.close((sender(NOW, &holder), &file(1)), &given.stateid).unwrap();
    let asks = engine.break_delegations(NOW, None, &file(1), Share::access(Share::BOTH));
    assert_eq!(asks, Err(Error::Delay));
    engine.recall_sent(NOW, &holder, &stateid);
    let later = NOW + engine.settings().lease;
    session(&engine, later - SECOND, "holder").unwrap();
    engine.tick(later);
    assert_eq!((engine.census().states, engine.census().files), (1, 0), "it is not freed yet");
    assert_eq!(engine.test_stateid(sender(later, &holder), &stateid), Err(Error::DelegRevoked));
    engine.free_stateid(sender(later, &holder), &stateid).unwrap();
    assert_eq!(engine.census().states, 0);
}

/// Each file may have many ranges and each client many files, but all together they are limited.
#[test]
fn state_of_clients_takes_no_more_memory_than_the_limit() {
    const BYTES: usize = 200_000;
    let engine = engine(|settings| settings.limits.held_bytes = BYTES);
    let greedy = client(&engine, NOW, "greedy");
    let mut refused = 0;
    for number in 0..100 {
        let (name, stateid) =
            (format!("process {number}"), opened(&engine, &greedy, ("o", number)));
        for byte in 0..100 {
            let range = ByteRange { first: 2 * byte, last: 2 * byte };
            let wish = Lock { range, ..lock(stateid, &name, number) };
            refused += usize::from(engine.lock(sender(NOW, &greedy), &wish).is_err());
        }
        if refused > 0 {
            break;
        }
    }
    assert!(refused > 0, "no request is refused");
    assert!(engine.census().held_bytes <= BYTES / 2, "{:?}", engine.census());
    let modest = client(&engine, NOW, "modest");
    let stateid = opened(&engine, &modest, ("o", 200));
    engine.lock(sender(NOW, &modest), &lock(stateid, "l", 200)).expect("there is some left");
    engine.evict(NOW, &greedy);
    engine.evict(NOW, &modest);
    assert_eq!(engine.census().held_bytes, 0);
}

/// Opens with owner names of the longest length.
#[test]
fn an_expired_client_keeps_no_memory_that_others_need() {
    let engine = engine(|settings| settings.limits.held_bytes = 200_000);
    let names: Vec<String> = (0..8).map(|number| format!("{number}").repeat(1000)).collect();
    let fill = |client: &Arc<Client>| {
        let open = |number: u8, name: &str| {
            let name = (name, number);
            open(&engine, client, name, DelegationWish::None).is_ok()
        };
        let each = |number| names.iter().all(|name| open(number, name));
        (0..200).take_while(|number| each(*number)).count()
    };
    for gone in ["a", "b", "c"] {
        fill(&client(&engine, NOW, gone));
    }
    let full = engine.census().held_bytes;
    assert!(full > 150_000, "{full}");
    let later = NOW + engine.settings().lease;
    engine.tick(later);
    let census = engine.census();
    assert!(census.held_bytes <= 150_000, "{census:?}");
    assert_eq!(census.clients, 2, "a client is evicted whose memory no other needs");
}
