//! Clients: who they are, how they introduce themselves, and how long they live.

mod exported;
mod peer;
mod probe;
mod registry;

pub use exported::ExportedClient;
pub(crate) use registry::{Clients, Names};

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::channel::Creation;
use crate::client_state::{Announced, ClientState, Holdings, Standing};
use crate::memory_pool::{Pool, PoolShare};
use crate::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::table::{Keyed, lock};
use crate::{
    CallbackAddress, Caller, ClientId, ClientOwner, ClientProtocol, Error, Identity, Origin,
    Principal, Record, RecordedClient, Result, SessionId, Verifier,
};
use peer::Peer;
use probe::HostProbe;

/// A client. What never changes can be read at once; the rest is behind one lock, under which a
/// file's may be taken, never the other way round.
pub struct Client {
    pub(crate) id: ClientId,
    /// Number of clients that were created before it.
    pub(crate) serial: u32,
    pub(crate) protocol: ClientProtocol,
    pub(crate) owner: Box<[u8]>,
    pub(crate) verifier: Verifier,
    /// The caller that introduced it.
    introduced_by: Caller,
    /// When it introduced itself.
    pub(crate) met: Duration,
    /// Origin of the last call of its principal.
    origin: Mutex<Origin>,
    address: OnceLock<Box<str>>,
    renewed_nanoseconds: AtomicU64,
    /// True if its callback channel has answered.
    callbacks: AtomicBool,
    /// True if the callback channel worked once and does not any more.
    callbacks_lost: AtomicBool,
    /// True if it has revoked delegations that it has not freed.
    revoked: AtomicBool,
    /// The state of the host's status monitor (its count of restarts) at its last lock.
    monitor_state: AtomicI32,
    /// Questions to a host of NLM, and their answers.
    pub(crate) asked: HostProbe,
    /// True if its lease had expired at the last tick.
    courteous: AtomicBool,
    /// Share of the memory for replies that all clients of its origin have.
    pub(crate) replies: Arc<PoolShare>,
    state: Mutex<ClientState>,
}

/// The facts of a client's introduction.
pub(crate) struct NewClient {
    pub(crate) protocol: ClientProtocol,
    pub(crate) owner: crate::ClientOwner,
    pub(crate) caller: Caller,
    pub(crate) announced: Option<Announced>,
}

impl Keyed for Client {
    type Key = ClientId;

    fn key(&self) -> &ClientId {
        &self.id
    }
}

impl Client {
    fn new(
        now: Duration,
        (serial, id): (u32, ClientId),
        birth: NewClient,
        (held, peer): (&Arc<Pool>, Peer),
    ) -> Self {
        Self {
            id,
            serial,
            protocol: birth.protocol,
            owner: birth.owner.id,
            verifier: birth.owner.verifier,
            introduced_by: birth.caller,
            met: now,
            origin: Mutex::new(birth.caller.origin),
            address: OnceLock::new(),
            renewed_nanoseconds: AtomicU64::new(now.as_nanos() as u64),
            callbacks: AtomicBool::new(false),
            callbacks_lost: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
            monitor_state: AtomicI32::new(0),
            asked: HostProbe::default(),
            courteous: AtomicBool::new(false),
            replies: peer.replies,
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
                holdings: Holdings::new(held, peer.held),
            }),
        }
    }

    /// Its clientid.
    #[must_use]
    pub const fn id(&self) -> ClientId {
        self.id
    }

    /// The protocol by which it introduced itself.
    #[must_use]
    pub const fn protocol(&self) -> ClientProtocol {
        self.protocol
    }

    /// The owner id it goes by.
    #[must_use]
    pub fn owner(&self) -> &[u8] {
        &self.owner
    }

    /// Notes the address from which it introduced itself, for administrators; the first one counts.
    pub fn note_address(&self, address: impl FnOnce() -> Box<str>) {
        self.address.get_or_init(address);
    }

    /// The address from which it introduced itself, if that was noted.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.get().map(|address| &**address)
    }

    /// Its own principal, where that was seen last.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller { origin: self.origin(), ..self.introduced_by }
    }

    /// The caller that introduced it.
    pub(crate) const fn introducer(&self) -> Caller {
        self.introduced_by
    }

    /// Returns whether a caller is the principal that introduced it, or the system of the machine
    /// where that is, which can be all its users: FreeBSD introduces itself in minor version 0 as
    /// the user who opens a file first, and renews and recovers as root.
    pub(crate) fn is_principal(&self, caller: Caller) -> bool {
        let is_system = || caller.principal == Principal::SYSTEM && caller.origin == self.origin();
        caller.principal == self.introduced_by.principal || is_system()
    }

    /// A host of NLM uses this address of the server, and knows it by that.
    pub fn set_server_address(&self, address: Option<IpAddr>) {
        lock(&self.state).server_address = address;
    }

    /// Returns the address of the server that a host of NLM used last, if it is known.
    #[must_use]
    pub fn server_address(&self) -> Option<IpAddr> {
        lock(&self.state).server_address
    }

    /// Returns the callback address of a client of minor version 0.
    #[must_use]
    pub fn callback_address(&self) -> Option<CallbackAddress> {
        lock(&self.state).callback.clone()
    }

    /// Its sessions.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionId> {
        lock(&self.state).sessions.clone()
    }

    /// Returns whether it can be called back.
    #[must_use]
    pub fn has_callbacks(&self) -> bool {
        self.callbacks.load(Ordering::Acquire)
    }

    pub(crate) fn set_callbacks(&self, work: bool) {
        let worked = self.callbacks.swap(work, Ordering::AcqRel);
        // A channel that never worked is not lost, and one that fails twice still is.
        if work || worked {
            self.callbacks_lost.store(!work, Ordering::Release);
        }
    }

    /// Returns whether its callback channel is known to be broken.
    #[must_use]
    pub fn lost_callbacks(&self) -> bool {
        self.callbacks_lost.load(Ordering::Acquire)
    }

    /// Notes for [`Client::has_revoked`] what became of its delegations.
    pub(crate) fn note_revoked(&self, state: &ClientState) {
        self.revoked.store(state.holdings.counts().revoked > 0, Ordering::Release);
    }

    /// Returns whether it has delegations that were taken back by force and that it has not freed.
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

    /// Notes whether its lease has expired; returns whether it had before.
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

    /// Renews the lease of a client of minor version 0, which has no SEQUENCE to do that.
    pub(crate) fn renew_unsequenced(&self, now: Duration) {
        if self.protocol == ClientProtocol::Setclientid {
            self.renew(now);
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
        RecordedClient { protocol: self.protocol, id: self.owner.clone() }
    }

    /// Returns the origin of the last call of its principal.
    pub(crate) fn origin(&self) -> Origin {
        *lock(&self.origin)
    }

    /// Notes that its principal calls from this origin now.
    pub(crate) fn move_to(&self, origin: Origin) {
        *lock(&self.origin) = origin;
    }

    /// Lets a caller act for the client: one with the client's origin, or the client's own
    /// principal, whose origin may have changed.
    ///
    /// # Errors
    /// [`Error::Delay`]: the caller is another user with another origin. If the client has moved, a
    /// call of its principal will show that.
    pub(crate) fn admit(&self, caller: Caller) -> Result<()> {
        if self.origin() == caller.origin {
            return Ok(());
        }
        if !self.is_principal(caller) {
            return Err(Error::Delay);
        }
        self.move_to(caller.origin);
        Ok(())
    }

    /// The name it goes by, and its instance.
    pub(crate) fn name(&self) -> ClientOwner {
        ClientOwner { verifier: self.verifier, id: self.owner.clone() }
    }

    /// Returns the record by which it may reclaim after a restart.
    pub(crate) fn record(&self) -> Record {
        Record::Client(self.recorded(), Some(self.identity()))
    }

    /// Returns the identity by which it is recognized after a restart of the server.
    pub(crate) fn identity(&self) -> Identity {
        let Caller { principal, origin } = self.introduced_by;
        Identity { principal, origin, verifier: self.verifier }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.id)
    }
}

/// Returns whether both are one client, not only equal ones.
pub(crate) fn same(one: &Arc<Client>, other: &Arc<Client>) -> bool {
    Arc::ptr_eq(one, other)
}
