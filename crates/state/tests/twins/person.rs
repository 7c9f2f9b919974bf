//! Clients: the stateids that they believe to have, and their introduction.

use std::sync::Arc;

use comity_state::{
    CallbackAddress, Caller, ChannelAttrs, Client, ClientOwner, ConnectionId, Engine, ExchangeId,
    HostLock, Origin, Principal, Sequence, SessionId, Setclientid, Stateid, Verifier,
};

use crate::introduction::session_of;
use crate::side::Time;
use crate::step::{FILES, HOST, OLD, OWNERS, PEOPLE};

/// A client or a host.
#[derive(Clone)]
pub(super) struct Person {
    pub(super) client: Arc<Client>,
    /// The last request of a client with a session.
    pub(super) request: Option<Sequence>,
    /// The last seqid of the open-owner of a client of minor version 0.
    pub(super) seqid: u32,
    /// The last seqids of its lock-owners.
    pub(super) lock_seqids: [u32; OWNERS],
    /// The files that all clients use, followed by one file for each client.
    pub(super) of_files: [Believed; FILES + PEOPLE],
    /// The last lock that was granted to a waiting host.
    pub(super) granted: Option<HostLock<'static>>,
}

/// The stateids of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Believed {
    pub(super) open: Option<Stateid>,
    pub(super) locks: [Option<Stateid>; OWNERS],
    pub(super) delegation: Option<Stateid>,
}

impl Believed {
    pub(super) fn stateids(&self) -> impl Iterator<Item = Stateid> {
        [self.open, self.delegation].into_iter().chain(self.locks).flatten()
    }
}

/// Each client is on a machine of its own.
pub(super) fn caller(who: usize) -> Caller {
    Caller { principal: Principal(0), origin: Origin::from_bytes([who as u8; 16]) }
}

const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 4096,
    response_bytes_max: 4096,
    response_cached_bytes_max: 1024,
    operations_max: 8,
    requests_max: 2,
};

impl Person {
    /// Introduces a client or a host in its `life`-th life.
    pub(super) fn arrive(engine: &Engine, now: Time, who: usize, life: u8) -> Self {
        let owner = ClientOwner { verifier: Verifier([life; 8]), id: [who as u8].into() };
        let (client, session) = match who {
            HOST => {
                engine.forget_host(now, b"host");
                (engine.host(now, b"host", caller(who).origin).unwrap(), None)
            }
            OLD => (set_clientid(engine, now, owner), None),
            _ => exchange_id(engine, now, (who, owner)),
        };
        if who != HOST {
            engine.callbacks_work(&client);
        }
        let request = session.map(|session| first_request(session, who));
        Self {
            client,
            request,
            seqid: 0,
            lock_seqids: [0; OWNERS],
            of_files: Default::default(),
            granted: None,
        }
    }
}

fn exchange_id(
    engine: &Engine,
    now: Time,
    (who, owner): (usize, ClientOwner),
) -> (Arc<Client>, Option<SessionId>) {
    let args = ExchangeId { owner, caller: caller(who), update: false };
    let known = engine.exchange_id(now, args).unwrap();
    let session = session_of(&known, (caller(who), who as u64), ATTRS);
    let session = engine.create_session(now, &session).unwrap().session;
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.reclaim_complete(now, &client, caller(who)).unwrap();
    (client, Some(session))
}

fn set_clientid(engine: &Engine, now: Time, owner: ClientOwner) -> Arc<Client> {
    let callback = CallbackAddress { program: 1, ..CallbackAddress::default() };
    let args = Setclientid { owner, caller: caller(OLD), callback };
    let made = engine.setclientid(now, args).unwrap();
    engine.setclientid_confirm(now, (made.clientid, made.confirm), caller(OLD)).unwrap();
    engine.client_of(made.clientid, caller(OLD)).unwrap()
}

const fn first_request(session: SessionId, who: usize) -> Sequence {
    Sequence {
        session,
        seqid: 0,
        slot: 0,
        highest_slot: 0,
        cache_this: true,
        operations: 2,
        request_bytes: 100,
        digest: 0,
        connection: ConnectionId(who as u64),
        origin: Origin::from_bytes([who as u8; 16]),
    }
}
