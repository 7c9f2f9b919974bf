//! Callers that use the name or a stateid of another caller.
#![allow(clippy::unwrap_used, clippy::panic)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, CallbackAddress, Caller, ChannelAttrs, Claim, Client, ClientId, ClientOwner,
    Delegation, DelegationWish, Engine, Error, ExchangeId, FileKey, Introduced, Io, Lock, LockType,
    Locker, Open, Opened, Origin, Principal, Recovered, Sender, Setclientid, Settings, Share,
    Verifier,
};
use comity_vfs::Handle;
use introduction::session_of;

const NOW: Duration = Duration::from_secs(1000);
const FILE: u8 = 1;

const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 1 << 20,
    response_bytes_max: 1 << 20,
    response_cached_bytes_max: 4096,
    operations_max: 16,
    requests_max: 4,
};

fn engine() -> Engine {
    Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new())
}

/// A user; all users are on one machine.
fn caller(name: &str) -> Caller {
    let principal = Principal(name.bytes().fold(0, |number, byte| number << 8 | u64::from(byte)));
    Caller { principal, origin: Origin::default() }
}

/// SETCLIENTID with a name that all callers use.
fn announce(engine: &Engine, life: u8, who: &str) -> Result<Introduced, Error> {
    let owner = ClientOwner { verifier: Verifier([life; 8]), id: b"name"[..].into() };
    let callback = CallbackAddress::default();
    engine.setclientid(NOW, Setclientid { owner, caller: caller(who), callback })
}

fn confirm(engine: &Engine, now: Duration, who: &str, said: Introduced) -> Result<(), Error> {
    engine.setclientid_confirm(now, (said.clientid, said.confirm), caller(who))
}

/// A client of minor version 1.
fn client_with_session(engine: &Engine) -> Arc<Client> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: b"sessions"[..].into() };
    let args = ExchangeId { owner, caller: caller("root"), update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    let session = session_of(&known, (caller("root"), 1), ATTRS);
    engine.create_session(NOW, &session).unwrap();
    let client = engine.client_by_id(known.clientid).unwrap();
    engine.callbacks_work(&client);
    engine.reclaim_complete(NOW, &client, caller("root")).unwrap();
    client
}

fn file() -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[FILE]).unwrap() }
}

fn open(engine: &Engine, client: &Arc<Client>) -> Opened {
    let (share, claim, wish) = (Share::access(Share::BOTH), Claim::New, DelegationWish::Write);
    let (owner, file, caller) = (&b"o"[..], file(), caller("root"));
    let (user, grantee, empties) = (None, None, false);
    engine
        .open(
            NOW,
            &Open { client, caller, owner, file, share, claim, wish, user, grantee, empties },
        )
        .unwrap()
}

fn opens(engine: &Engine, client: ClientId) -> Opened {
    open(engine, &engine.client_of(client, caller("root")).unwrap())
}

/// The name was free when the caller introduced itself, but is not when it confirms (RFC 7530,
/// 16.34.5).
#[test]
fn an_introduction_cannot_be_confirmed_when_the_name_is_in_use_meanwhile() {
    let engine = engine();
    let first = announce(&engine, 1, "root").unwrap();
    let eve = announce(&engine, 2, "eve").unwrap();
    confirm(&engine, NOW, "root", first).unwrap();
    let opened = opens(&engine, first.clientid);
    assert_eq!(confirm(&engine, NOW, "eve", eve), Err(Error::ClidInuse));
    let by_itself = Sender { now: NOW, client: None, caller: caller("root") };
    assert_eq!(engine.test_stateid(by_itself, &opened.stateid), Ok(()));
    let later = NOW + engine.settings().lease;
    assert_eq!(confirm(&engine, later, "eve", eve), Ok(()));
    assert_eq!(engine.renew(later, first.clientid, caller("root")), Err(Error::Expired));
}

/// In minor version 0 a stateid identifies its client; in a session the session does.
#[test]
fn state_of_a_client_with_sessions_can_be_used_only_in_them() {
    let engine = engine();
    let client = client_with_session(&engine);
    let opened = open(&engine, &client);
    let Delegation::Granted { stateid: delegation, .. } = opened.delegation else { panic!() };
    let (range, kind) = (ByteRange::ALL, LockType::Write);
    let locker = Locker::New { open: opened.stateid, owner: b"l", seqid: 0 };
    let wish = Lock { file: file(), range, kind, reclaim: false, wait: false, locker };
    let own = Sender { now: NOW, client: Some(&client), caller: caller("root") };
    let locked = engine.lock(own, &wish).unwrap();
    let stranger =
        Sender { now: NOW + Duration::from_secs(9), client: None, caller: caller("root") };
    let at = (stranger, &file());
    for stateid in [opened.stateid, delegation, locked] {
        let io = Io { file: &file(), access: Share::READ, user: None };
        let read = engine.check_io(stranger, &stateid, &io);
        assert_eq!(read.map(drop), Err(Error::BadStateid));
        assert!(matches!(engine.stateid_turn(at, &stateid, 1), Err(Error::BadStateid)));
    }
    assert_eq!(engine.unlock(stranger, &locked, (&file(), range)), Err(Error::BadStateid));
    assert_eq!(engine.close(at, &opened.stateid), Err(Error::BadStateid));
    assert_eq!(engine.delegreturn(at, &delegation), Err(Error::BadStateid));
    assert_eq!(client.renewed(), NOW, "the lease was renewed by another caller");
}
