//! An engine, callers, and the operations that they send.

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    CallbackAddress, Caller, ChannelAttrs, Claim, Client, ClientId, ClientOwner, ConnectionId,
    CreateSession, DelegationWish, Engine, Error, ExchangeId, Exchanged, FileKey, Grantee,
    Introduced, Open, Opened, Origin, Principal, Recovered, Result, Sender, SessionId, Setclientid,
    Settings, Share, Verifier,
};
use comity_vfs::{Cred, Disk, Handle};

pub(super) const NOW: Duration = Duration::from_secs(1000);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const NAME: &str = "victim";

/// The principal of the victim's client: the system of the victim's machine.
pub(super) const VICTIM: Caller = caller(0, 1);
/// The same principal at another address.
pub(super) const ELSEWHERE: Caller = caller(0, 2);
/// A user of the victim's machine, who opens files.
pub(super) const USER: Caller = caller(1000, 1);
/// Another user of the victim's machine.
pub(super) const NEIGHBOUR: Caller = caller(1001, 1);
/// Another user at another address.
pub(super) const STRANGER: Caller = caller(1001, 2);

pub(super) const fn caller(principal: u64, place: u8) -> Caller {
    Caller { principal: Principal(principal), origin: Origin::from_bytes([place; 16]) }
}

pub(super) const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 1 << 20,
    response_bytes_max: 1 << 20,
    response_cached_bytes_max: 4096,
    operations_max: 16,
    requests_max: 4,
};

pub(super) fn engine() -> Engine {
    engine_with(|_| {})
}

pub(super) fn engine_with(change: impl FnOnce(&mut Settings)) -> Engine {
    let mut settings = Settings::new(1, [7; 16]);
    change(&mut settings);
    Engine::new(NOW, settings, Recovered::new())
}

pub(super) fn file(number: u8) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[number]).unwrap() }
}

/// A name, and the verifier of an instance of its client.
pub(super) fn owner(name: &str, instance: u8) -> ClientOwner {
    ClientOwner { verifier: Verifier([instance; 8]), id: name.as_bytes().into() }
}

pub(super) fn exchange(
    engine: &Engine,
    now: Duration,
    caller: Caller,
    (name, instance): (&str, u8),
) -> Result<Exchanged> {
    let owner = owner(name, instance);
    engine.exchange_id(now, ExchangeId { owner, caller, update: false })
}

/// Sends CREATE_SESSION on the connection with the number of the caller's address.
pub(super) fn create_session(
    engine: &Engine,
    now: Duration,
    caller: Caller,
    (clientid, sequenceid): (ClientId, u32),
) -> Result<SessionId> {
    let args = CreateSession {
        clientid,
        sequenceid,
        caller,
        connection: connection(caller),
        back_wanted: true,
        fore: ATTRS,
        back: ATTRS,
        minor: 1,
        program: 1,
        security: Box::default(),
    };
    engine.create_session(now, &args).map(|made| made.session)
}

pub(super) fn connection(caller: Caller) -> ConnectionId {
    ConnectionId(caller.origin.bytes()[0].into())
}

/// Sends EXCHANGE_ID and CREATE_SESSION.
pub(super) fn arrive(
    engine: &Engine,
    now: Duration,
    caller: Caller,
    name: (&str, u8),
) -> Result<SessionId> {
    let known = exchange(engine, now, caller, name)?;
    create_session(engine, now, caller, (known.clientid, known.sequenceid))
}

/// A client of minor version 1 that can be called back and has ended its reclaim.
pub(super) fn client_41(engine: &Engine, caller: Caller, name: &str) -> (Arc<Client>, SessionId) {
    let session = arrive(engine, NOW, caller, (name, 1)).unwrap();
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.callbacks_work(&client);
    engine.reclaim_complete(NOW, &client, caller).unwrap();
    (client, session)
}

pub(super) fn announce(
    engine: &Engine,
    now: Duration,
    caller: Caller,
    (name, instance): (&str, u8),
) -> Result<Introduced> {
    let (owner, callback) = (owner(name, instance), CallbackAddress::default());
    engine.setclientid(now, Setclientid { owner, caller, callback })
}

pub(super) fn confirm(
    engine: &Engine,
    now: Duration,
    caller: Caller,
    said: Introduced,
) -> Result<()> {
    engine.setclientid_confirm(now, (said.clientid, said.confirm), caller)
}

/// A client of minor version 0 that can be called back.
pub(super) fn client_40(engine: &Engine, caller: Caller, name: &str) -> Arc<Client> {
    let said = announce(engine, NOW, caller, (name, 1)).unwrap();
    confirm(engine, NOW, caller, said).unwrap();
    let client = engine.client_of(said.clientid, caller).unwrap();
    engine.callbacks_work(&client);
    client
}

/// A client whose operations are sent in a session of minor version 1, or without one in minor
/// version 0.
#[derive(Clone)]
pub(super) struct Person {
    pub(super) client: Arc<Client>,
    pub(super) has_sessions: bool,
}

impl Person {
    /// The victim as a client of each minor version, with an engine for each.
    pub(super) fn both(engine: impl Fn() -> Engine) -> [(Engine, Self); 2] {
        let (old, new) = (engine(), engine());
        let client = client_40(&old, VICTIM, NAME);
        let old = (old, Self { client, has_sessions: false });
        let (client, _) = client_41(&new, VICTIM, NAME);
        [old, (new, Self { client, has_sessions: true })]
    }

    /// The sender of an operation on this client's state by some caller.
    pub(super) fn sender(&self, now: Duration, caller: Caller) -> Sender<'_> {
        Sender { now, client: self.has_sessions.then_some(&self.client), caller }
    }
}

/// A file to open, its owner and its share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) caller: Caller,
    pub(super) owner: &'a [u8],
    pub(super) file: u8,
    pub(super) share: Share,
    pub(super) delegation: DelegationWish,
    pub(super) claim: Claim,
    pub(super) user: Option<&'a Arc<Cred<Disk>>>,
    pub(super) grantee: Option<&'a Arc<Grantee>>,
}

/// An open for reading and writing by the user, without a delegation.
pub(super) const PLAIN: Wish<'static> = Wish {
    caller: USER,
    owner: b"o",
    file: 1,
    share: Share::access(Share::BOTH),
    delegation: DelegationWish::None,
    claim: Claim::New,
    user: None,
    grantee: None,
};

/// OPEN by an owner that has confirmed itself.
pub(super) fn try_open(
    engine: &Engine,
    now: Duration,
    client: &Arc<Client>,
    wish: Wish<'_>,
) -> Result<Opened> {
    let open = Open {
        client,
        caller: wish.caller,
        owner: wish.owner,
        file: file(wish.file),
        share: wish.share,
        claim: wish.claim,
        wish: wish.delegation,
        user: wish.user,
        grantee: wish.grantee,
        empties: false,
    };
    engine.open(now, &open)
}

/// OPEN, with OPEN_CONFIRM if the engine asks for it.
pub(super) fn open(engine: &Engine, person: &Person, wish: Wish<'_>) -> Opened {
    let opened = try_open(engine, NOW, &person.client, wish).unwrap();
    if !opened.confirm {
        return opened;
    }
    let shown = (person.sender(NOW, wish.caller), &file(wish.file));
    let stateid = engine.open_confirm(shown, &opened.stateid).unwrap();
    Opened { stateid, ..opened }
}

/// Returns the error of a result.
pub(super) fn error<T>(result: Result<T>) -> Option<Error> {
    result.err()
}
