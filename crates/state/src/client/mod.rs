//! Clients: who they are, how they introduce themselves, and how long they live.

mod destroy;
mod exchange_id;
mod lease;
mod registry;
mod setclientid;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use exchange_id::{ExchangeId, Exchanged};
pub(crate) use registry::{Clients, Names};
pub use setclientid::{Introduced, Setclientid};

use crate::effect::RecordedClient;
use crate::pool::{Pool, PoolShare};
use crate::session::Creation;
use crate::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::table::lock;
use crate::{ClientId, Desk, Error, Principal, Result, SessionId, Verifier};

/// Where a client of minor version 0 takes callbacks (RFC 7530, 3.1.1.1 and 16.33).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallbackAddress {
    /// The RPC program.
    pub program: u32,
    /// The transport, as `tcp`.
    pub netid: Box<[u8]>,
    /// The universal address.
    pub address: Box<[u8]>,
    /// What the client wants to be reminded of in each callback.
    pub ident: u32,
}

/// A client. What never changes can be read at once; the rest is behind one lock, under which a
/// file's may be taken, never the other way round.
pub struct Client {
    pub(crate) id: ClientId,
    pub(crate) desk: Desk,
    pub(crate) owner: Box<[u8]>,
    pub(crate) verifier: Verifier,
    pub(crate) principal: Principal,
    /// When it introduced itself.
    pub(crate) met: Duration,
    from: OnceLock<Box<str>>,
    renewed_nanoseconds: AtomicU64,
    /// Whether somebody has answered at its callback channel.
    callbacks: AtomicBool,
    /// Whether the callback channel was there and is not any more.
    callbacks_lost: AtomicBool,
    /// Whether there are delegations that were taken back by force and that it has not freed.
    revoked: AtomicBool,
    /// How often a host of NLM had started anew, as it said when it locked last.
    monitor_state: AtomicI32,
    /// Whether a host of NLM answers.
    pub(crate) asked: crate::hosts::Asked,
    /// Whether its lease was over when time last passed.
    courteous: AtomicBool,
    /// What its sessions have of the memory for replies.
    pub(crate) replies: PoolShare,
    state: Mutex<ClientState>,
}

/// What a client has.
pub(crate) struct ClientState {
    pub(crate) standing: Standing,
    /// What confirms it: for minor version 0, its announcement or a change of its callback address.
    pub(crate) announced: Option<Announced>,
    pub(crate) confirmed_by: Option<Verifier>,
    pub(crate) callback: Option<CallbackAddress>,
    pub(crate) creation: Creation,
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) sessions_made: u64,
    /// Whether it has said RECLAIM_COMPLETE.
    pub(crate) reclaim_complete: bool,
    /// Which address of the server a host of NLM used last.
    pub(crate) server_address: Option<IpAddr>,
    /// What a host of NLM may not know that it has.
    pub(crate) granted: Vec<crate::granted::Granted>,
    /// When it was last asked to keep fewer delegations.
    pub(crate) asked_any: Option<Duration>,
    pub(crate) holdings: crate::holdings::Holdings,
}

/// An announcement by SETCLIENTID that waits for its confirmation.
#[derive(Debug, Clone)]
pub(crate) struct Announced {
    pub(crate) confirm: Verifier,
    pub(crate) callback: CallbackAddress,
}

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has said who it is.
    Unconfirmed,
    /// It has a lease.
    Confirmed,
    /// It has been forgotten; who still holds it has to let go.
    Gone,
}

/// How a client came to be known.
pub(crate) struct Birth {
    pub(crate) id: ClientId,
    pub(crate) desk: Desk,
    pub(crate) owner: crate::ClientOwner,
    pub(crate) principal: Principal,
    pub(crate) announced: Option<Announced>,
}

impl Client {
    pub(crate) fn new(now: Duration, birth: Birth, held: &Arc<Pool>) -> Self {
        Self {
            id: birth.id,
            desk: birth.desk,
            owner: birth.owner.id,
            verifier: birth.owner.verifier,
            principal: birth.principal,
            met: now,
            from: OnceLock::new(),
            renewed_nanoseconds: AtomicU64::new(now.as_nanos() as u64),
            callbacks: AtomicBool::new(false),
            callbacks_lost: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
            monitor_state: AtomicI32::new(0),
            asked: crate::hosts::Asked::default(),
            courteous: AtomicBool::new(false),
            replies: PoolShare::default(),
            state: Mutex::new(ClientState {
                standing: Standing::Unconfirmed,
                announced: birth.announced,
                confirmed_by: None,
                callback: None,
                creation: Creation::default(),
                sessions: Vec::new(),
                sessions_made: 0,
                reclaim_complete: false,
                server_address: None,
                granted: Vec::new(),
                asked_any: None,
                holdings: crate::holdings::Holdings::new(held),
            }),
        }
    }

    /// Its clientid.
    #[must_use]
    pub const fn id(&self) -> ClientId {
        self.id
    }

    /// The desk it came to.
    #[must_use]
    pub const fn desk(&self) -> Desk {
        self.desk
    }

    /// The owner id it goes by.
    #[must_use]
    pub fn owner(&self) -> &[u8] {
        &self.owner
    }

    /// Notes from where it introduced itself, for those who look after the server; the first word
    /// counts.
    pub fn note_origin(&self, from: impl FnOnce() -> Box<str>) {
        self.from.get_or_init(from);
    }

    /// From where it introduced itself, if that was noted.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.from.get().map(|from| &**from)
    }

    /// A host of NLM uses this address of the server, and knows it by that.
    pub fn set_server_address(&self, address: Option<IpAddr>) {
        lock(&self.state).server_address = address;
    }

    /// Which address of the server a host of NLM used last, if that is known.
    #[must_use]
    pub fn server_address(&self) -> Option<IpAddr> {
        lock(&self.state).server_address
    }

    /// Where it takes callbacks, for one of minor version 0.
    #[must_use]
    pub fn callback_address(&self) -> Option<CallbackAddress> {
        lock(&self.state).callback.clone()
    }

    /// Its sessions.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionId> {
        lock(&self.state).sessions.clone()
    }

    /// Whether it can be called back.
    #[must_use]
    pub fn has_callbacks(&self) -> bool {
        self.callbacks.load(Ordering::Acquire)
    }

    pub(crate) fn set_callbacks(&self, work: bool) {
        let worked = self.callbacks.swap(work, Ordering::AcqRel);
        // What never worked is not lost, and what fails twice is still.
        if work || worked {
            self.callbacks_lost.store(!work, Ordering::Release);
        }
    }

    /// Whether its callback channel is known to be broken.
    #[must_use]
    pub fn lost_callbacks(&self) -> bool {
        self.callbacks_lost.load(Ordering::Acquire)
    }

    /// Notes for [`Client::has_revoked`] what became of its delegations.
    pub(crate) fn note_revoked(&self, state: &ClientState) {
        self.revoked.store(state.holdings.counts().revoked > 0, Ordering::Release);
    }

    /// Whether it has delegations that were taken back by force and that it has not freed.
    pub(crate) fn has_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// A host of NLM says how often it has started anew (the state of its status monitor).
    pub fn set_monitor_state(&self, state: i32) {
        self.monitor_state.store(state, Ordering::Relaxed);
    }

    pub(crate) fn monitor_state(&self) -> i32 {
        self.monitor_state.load(Ordering::Relaxed)
    }

    /// Notes whether its lease is over; tells whether it was before.
    pub(crate) fn set_courteous(&self, courteous: bool) -> bool {
        self.courteous.swap(courteous, Ordering::AcqRel)
    }

    pub(crate) fn renew(&self, now: Duration) {
        let now = now.as_nanos() as u64;
        // Of two at once the earlier may be the one that stays: by the moment between them, which
        // no lease is short enough to miss.
        if now > self.renewed_nanoseconds.load(Ordering::Acquire) {
            self.renewed_nanoseconds.store(now, Ordering::Release);
        }
    }

    /// When it was last heard of.
    #[must_use]
    pub fn renewed(&self) -> Duration {
        Duration::from_nanos(self.renewed_nanoseconds.load(Ordering::Acquire))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ClientState> {
        lock(&self.state)
    }

    /// Its state, if it still has any.
    pub(crate) fn live(&self) -> Result<MutexGuard<'_, ClientState>> {
        let state = self.state();
        if state.standing == Standing::Gone { Err(Error::Expired) } else { Ok(state) }
    }

    pub(crate) fn recorded(&self) -> RecordedClient {
        RecordedClient { desk: self.desk, id: self.owner.clone() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.id)
    }
}

/// Whether two are the same client, not only alike.
pub(crate) fn same(one: &Arc<Client>, other: &Arc<Client>) -> bool {
    Arc::ptr_eq(one, other)
}
