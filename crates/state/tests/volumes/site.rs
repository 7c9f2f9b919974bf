//! Engines, clients, and a volume with state of every kind.

use std::sync::Arc;
use std::time::Duration;

use comity_keys::{Algorithm, PublicKey};
use comity_state::{
    ByteRange, CallbackAddress, Caller, ChannelAttrs, Claim, Client, ClientOwner, DelegationWish,
    Engine, Error, ExchangeId, FileKey, Grantee, HostLock, Lock, LockRefusal, LockRequestKind,
    LockType, Locker, Open, Opened, Origin, OriginChannel, Principal, Recovered, Sender, SessionId,
    Setclientid, Settings, Share, Stateid, Verifier,
};
use comity_vfs::{Cred, Gid, Handle, Uid};

use crate::introduction::session_of;

pub(super) const NOW: Duration = Duration::from_secs(1000);
pub(super) const VOLUME: u64 = 1;
pub(super) const ELSEWHERE: u64 = 2;

pub(super) const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 4096,
    response_bytes_max: 4096,
    response_cached_bytes_max: 1024,
    operations_max: 8,
    requests_max: 2,
};

/// An engine whose secret and boot number are those of no engine with another `number`.
pub(super) fn engine(number: u8) -> Engine {
    engine_with(number, |_| {})
}

pub(super) fn engine_with(number: u8, change: impl FnOnce(&mut Settings)) -> Engine {
    let mut settings = Settings::new(number.into(), [number; 16]);
    change(&mut settings);
    Engine::new(NOW, settings, Recovered::new())
}

pub(super) fn file(volume: u64, number: u8) -> FileKey {
    FileKey { volume, export: 1, handle: Handle::new(&[number]).unwrap() }
}

pub(super) fn caller(machine: u8) -> Caller {
    let origin = Origin::from_bytes([machine; 16]).over(OriginChannel::Tls);
    Caller { principal: Principal(0), origin }
}

pub(super) fn owner(name: &str) -> ClientOwner {
    ClientOwner { verifier: Verifier([1; 8]), id: name.as_bytes().into() }
}

/// A client with a session, on a machine of its own.
pub(super) fn client(engine: &Engine, name: &str) -> (Arc<Client>, SessionId) {
    let caller = caller(name.as_bytes()[0]);
    let args = ExchangeId { owner: owner(name), caller, update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    let session = session_of(&known, (caller, 1), ATTRS);
    let session = engine.create_session(NOW, &session).unwrap().session;
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.callbacks_work(&client);
    engine.reclaim_complete(NOW, &client, caller).unwrap();
    (client, session)
}

/// A client of minor version 0.
pub(super) fn old_client(engine: &Engine, name: &str) -> Arc<Client> {
    let caller = caller(name.as_bytes()[0]);
    let callback = CallbackAddress { program: 1, ..CallbackAddress::default() };
    let args = Setclientid { owner: owner(name), caller, callback };
    let made = engine.setclientid(NOW, args).unwrap();
    engine.setclientid_confirm(NOW, (made.clientid, made.confirm), caller).unwrap();
    engine.client_of(made.clientid, caller).unwrap()
}

pub(super) fn open(
    engine: &Engine,
    client: &Arc<Client>,
    (file, access): (FileKey, u32),
    wish: DelegationWish,
) -> Result<Opened, Error> {
    let (owner, share, claim) = (&b"opener"[..], Share::access(access), Claim::New);
    let user = Cred::new(Uid::new(7), Gid::new(8)).with_groups([Gid::new(9)]);
    let user = Some(Arc::new(user));
    let (caller, grantee, empties) = (client.caller(), Some(grantee()), false);
    let (user, grantee) = (user.as_ref(), grantee.as_ref());
    engine.open(
        NOW,
        &Open { client, caller, owner, file, share, claim, wish, user, grantee, empties },
    )
}

fn grantee() -> Arc<Grantee> {
    let key = PublicKey::from_raw(Algorithm::Ed25519, &[7; 32]).unwrap();
    Arc::new(Grantee { key, address: [10, 0, 0, 1].into(), export: 1, user: Some("ann".into()) })
}

pub(super) fn opened(engine: &Engine, client: &Arc<Client>, file: FileKey) -> Stateid {
    open(engine, client, (file, Share::BOTH), DelegationWish::None).unwrap().stateid
}

/// Locks the whole file, or begins to wait for that.
pub(super) fn lock(
    engine: &Engine,
    client: &Arc<Client>,
    (file, open): (FileKey, Stateid),
) -> Result<Stateid, LockRefusal> {
    let locker = Locker::New { open, owner: b"locker", seqid: 1 };
    let (range, kind) = (ByteRange::ALL, LockType::Write);
    let args = Lock { file, range, kind, reclaim: false, wait: true, locker };
    engine.lock(Sender::of(NOW, client), &args)
}

pub(super) fn host_lock(number: u8) -> HostLock<'static> {
    let (range, kind) = (ByteRange { first: 5, last: 9 }, LockType::Write);
    HostLock { owner: b"process", file: file(VOLUME, number), range, kind }
}

/// An engine with state of every kind that can move. All of it is of one volume.
pub(super) fn sample() -> Engine {
    let engine = engine(1);
    let (a, _) = client(&engine, "a");
    let (b, _) = client(&engine, "b");
    let old = old_client(&engine, "c");
    let host = engine.host(NOW, b"host", caller(9).origin).unwrap();
    delegate(&engine, &a, &b);
    let contended = file(VOLUME, 1);
    let held = opened(&engine, &a, contended);
    lock(&engine, &a, (contended, held)).unwrap();
    let waits = opened(&engine, &b, contended);
    assert!(lock(&engine, &b, (contended, waits)).is_err(), "it waits");
    let wish = host_lock(1);
    assert!(engine.lock_host(NOW, &host, &wish, LockRequestKind::Blocking).is_err());
    opened(&engine, &old, file(VOLUME, 3));
    grant(&engine, (&a, &host));
    announce(&engine, &old);
    while engine.poll_effect().is_some() {}
    engine
}

/// A delegation of client `a` is recalled for client `b`, and another one was revoked.
fn delegate(engine: &Engine, a: &Arc<Client>, b: &Arc<Client>) {
    for number in [2, 4] {
        let wanted = (file(VOLUME, number), Share::BOTH);
        open(engine, a, wanted, DelegationWish::Write).unwrap();
    }
    let (before, write) = (NOW - Duration::from_secs(300), Share::access(Share::WRITE));
    assert!(engine.break_delegations(before, None, &file(VOLUME, 4), write).is_err());
    engine.tick(NOW);
    let wanted = (file(VOLUME, 2), Share::READ);
    assert!(open(engine, b, wanted, DelegationWish::None).is_err(), "it is recalled");
}

/// A host waits for a lock, gets it, and has not acknowledged it.
fn grant(engine: &Engine, (a, host): (&Arc<Client>, &Arc<Client>)) {
    let wanted = file(VOLUME, 5);
    let open = opened(engine, a, wanted);
    let held = lock(engine, a, (wanted, open)).unwrap();
    let wish = host_lock(5);
    assert!(engine.lock_host(NOW, host, &wish, LockRequestKind::Blocking).is_err());
    engine.unlock(Sender::of(NOW, a), &held, (&wanted, ByteRange::ALL)).unwrap();
    engine.lock_host(NOW, host, &wish, LockRequestKind::Offered).unwrap();
}

/// A client has sent SETCLIENTID with another address, and not confirmed it.
fn announce(engine: &Engine, old: &Arc<Client>) {
    let callback = CallbackAddress { program: 2, ..CallbackAddress::default() };
    let args = Setclientid { owner: owner("c"), caller: old.caller(), callback };
    engine.setclientid(NOW, args).unwrap();
}
