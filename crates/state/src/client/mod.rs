//! Clients: their names and principals, their leases, and the records by which they reclaim.

mod exported;
mod foreign_ids;
mod moves;
mod peer;
mod probe;
mod registry;

pub use exported::ExportedClient;
pub(crate) use registry::{Adopted, Clients, Names};

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use comity_credential::Channel;

use crate::channel::Creation;
use crate::client_state::{Announced, ClientState, Holdings, Moves, Standing};
use crate::memory_pool::{Pool, PoolShare};
use crate::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::table::{Keyed, lock};
use crate::{
    CallbackAddress, Caller, ClientId, ClientOwner, ClientProtocol, Error, Identity, Origin,
    OriginChannel, Principal, Record, RecordedClient, Result, SessionId, StateName, StatusFlags,
    Verifier,
};
use peer::Peer;
use probe::HostProbe;

/// A client. Facts that never change are read without a lock. The rest is behind one lock. A thread
/// that holds it may take the lock of a file; the opposite order is forbidden.
pub struct Client {
    pub(crate) id: ClientId,
    /// Number of clients that were created before it.
    pub(crate) serial: u32,
    pub(crate) protocol: ClientProtocol,
    pub(crate) owner: Box<[u8]>,
    pub(crate) verifier: Verifier,
    /// The caller that introduced it.
    introduced_by: Caller,
    /// Time at which it introduced itself.
    pub(crate) met: Duration,
    /// Origin of the last call by the client's principal.
    origin: Mutex<Origin>,
    /// The address from which it introduced itself, and after a blank the channel, unless that is
    /// plain.
    address: OnceLock<Box<str>>,
    renewed_nanoseconds: AtomicU64,
    /// True if its callback channel has answered.
    callbacks: AtomicBool,
    /// True if the callback channel worked once and does not any more.
    callbacks_lost: AtomicBool,
    /// The flags by which SEQUENCE tells it of revoked states that it has not freed.
    revoked_flags: AtomicU32,
    /// Time of the first SEQUENCE that told it of the last revocation, in nanoseconds; zero if none
    /// has.
    told_nanoseconds: AtomicU64,
    /// True if it may have states that rest on grants.
    has_grantees: AtomicBool,
    /// True if it has to hear of an export that has moved.
    lease_moved: AtomicBool,
    /// The state of the host's status monitor (its count of restarts) at its last lock.
    monitor_state: AtomicI32,
    /// Questions to a host of NLM, and their answers.
    pub(crate) asked: HostProbe,
    /// True if its lease had expired at the last tick.
    courteous: AtomicBool,
    /// The memory for replies that all clients of its origin share.
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
            revoked_flags: AtomicU32::new(0),
            told_nanoseconds: AtomicU64::new(0),
            has_grantees: AtomicBool::new(false),
            lease_moved: AtomicBool::new(false),
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
                moved: Moves::default(),
                holdings: Holdings::new(held, peer.held),
            }),
        }
    }

    /// Returns its clientid.
    #[must_use]
    pub const fn id(&self) -> ClientId {
        self.id
    }

    /// Returns the protocol by which it introduced itself.
    #[must_use]
    pub const fn protocol(&self) -> ClientProtocol {
        self.protocol
    }

    /// Returns its owner id.
    #[must_use]
    pub fn owner(&self) -> &[u8] {
        &self.owner
    }

    /// Notes the address and the channel by which the client introduced itself, for administrators.
    /// Later ones are ignored.
    pub fn note_address(&self, address: IpAddr, channel: &Channel) {
        let address = address.to_canonical();
        self.address.get_or_init(|| match channel {
            Channel::Plain => address.to_string().into(),
            channel => format!("{address} {channel}").into(),
        });
    }

    /// Returns the address from which it introduced itself, if one was noted.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.get().and_then(|noted| noted.split(' ').next())
    }

    /// Returns the text of the channel by which it introduced itself, if one was noted that is not
    /// plain.
    #[must_use]
    pub fn channel_text(&self) -> Option<&str> {
        self.address.get()?.split_once(' ').map(|(_, channel)| channel)
    }

    /// Returns its principal with the origin of that principal's last call.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller { origin: self.origin(), ..self.introduced_by }
    }

    /// Returns the caller that introduced it.
    pub(crate) const fn introducer(&self) -> Caller {
        self.introduced_by
    }

    /// Returns whether a caller may act as the principal that introduced the client. That is the
    /// principal itself. It is also the system user of the machine if an ordinary user introduced
    /// the client: in minor version 0, FreeBSD introduces itself as the user who opens a file
    /// first, and sends RENEW and reclaims as root.
    #[inline]
    pub(crate) fn is_principal(&self, caller: &Caller) -> bool {
        let is_system = || caller.principal == Principal::SYSTEM && caller.origin == self.origin();
        let is_it = || caller.principal == self.introduced_by.principal || is_system();
        caller.origin.channel() == self.channel() && is_it()
    }

    /// Returns the channel by which it introduced itself, and by which alone it can be used and
    /// called back.
    #[must_use]
    pub fn channel(&self) -> &OriginChannel {
        match self.protocol {
            // The name of a host says it.
            ClientProtocol::Nlm => &OriginChannel::Plain,
            _ => self.introduced_by.origin.channel(),
        }
    }

    /// Notes the address of the server that a host of NLM uses. The host recognizes the server by
    /// this address.
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

    /// Returns its sessions.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionId> {
        lock(&self.state).sessions.clone()
    }

    /// Returns whether a callback channel of the client works.
    #[must_use]
    pub fn has_callbacks(&self) -> bool {
        self.callbacks.load(Ordering::Acquire)
    }

    pub(crate) fn set_callbacks(&self, work: bool) {
        let worked = self.callbacks.swap(work, Ordering::AcqRel);
        // A channel that never worked is not lost. A channel that fails again is still lost.
        if work || worked {
            self.callbacks_lost.store(!work, Ordering::Release);
        }
    }

    /// Returns whether its callback channel has worked and is broken now.
    #[must_use]
    pub fn lost_callbacks(&self) -> bool {
        self.callbacks_lost.load(Ordering::Acquire)
    }

    /// Updates the flags of [`Client::tell_revoked`] from the client's state.
    pub(crate) fn note_revoked(&self, state: &ClientState) {
        self.revoked_flags.store(state.holdings.revoked_flags().0, Ordering::Release);
    }

    /// Notes that the client was not told of its last revocation yet.
    pub(crate) fn untold(&self) {
        self.told_nanoseconds.store(0, Ordering::Release);
    }

    /// Returns the flags by which SEQUENCE tells the client of revoked states that it has not
    /// freed. The cost is one atomic load if there are none.
    pub(crate) fn tell_revoked(&self, now: Duration) -> StatusFlags {
        let flags = self.revoked_flags.load(Ordering::Acquire);
        if flags != 0 {
            let (told, now) = (&self.told_nanoseconds, now.as_nanos() as u64);
            // It fails if the client was told before.
            let _ = told.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
        }
        StatusFlags(flags)
    }

    /// Returns whether it has revoked states that it has not freed.
    pub(crate) fn has_revoked(&self) -> bool {
        self.revoked_flags.load(Ordering::Acquire) != 0
    }

    /// Returns the time at which SEQUENCE first told the client of its last revocation.
    pub(crate) fn told(&self) -> Option<Duration> {
        let nanoseconds = self.told_nanoseconds.load(Ordering::Acquire);
        (nanoseconds != 0).then(|| Duration::from_nanos(nanoseconds))
    }

    /// Sets the time that [`Client::told`] returns.
    pub(crate) fn set_told(&self, told: Option<Duration>) {
        // Zero stands for none.
        let nanoseconds = told.map_or(0, |told| (told.as_nanos() as u64).max(1));
        self.told_nanoseconds.store(nanoseconds, Ordering::Release);
    }

    /// Notes whether any state rests on grants.
    pub(crate) fn note_grantees(&self, state: &ClientState) {
        self.has_grantees.store(state.holdings.rest_on_grants(), Ordering::Release);
    }

    /// Returns whether any state may rest on grants. The cost is one atomic load.
    pub(crate) fn has_grantees(&self) -> bool {
        self.has_grantees.load(Ordering::Acquire)
    }

    /// Notes the state of the host's status monitor, which counts restarts of the host.
    pub fn set_monitor_state(&self, state: i32) {
        self.monitor_state.store(state, Ordering::Relaxed);
    }

    pub(crate) fn monitor_state(&self) -> i32 {
        self.monitor_state.load(Ordering::Relaxed)
    }

    /// Returns whether its lease had expired at the last tick.
    pub(crate) fn is_courteous(&self) -> bool {
        self.courteous.load(Ordering::Acquire)
    }

    /// Notes whether its lease has expired; returns the previous value.
    pub(crate) fn set_courteous(&self, courteous: bool) -> bool {
        self.courteous.swap(courteous, Ordering::AcqRel)
    }

    pub(crate) fn renew(&self, now: Duration) {
        let now = now.as_nanos() as u64;
        // Two renewals at the same time may leave the earlier of their times. The error is the time
        // between the two, and every lease is far longer.
        if now > self.renewed_nanoseconds.load(Ordering::Acquire) {
            self.renewed_nanoseconds.store(now, Ordering::Release);
        }
    }

    /// Renews the lease of a client of minor version 0, which sends no SEQUENCE that renews it.
    pub(crate) fn renew_unsequenced(&self, now: Duration) {
        if self.protocol == ClientProtocol::Setclientid {
            self.renew(now);
        }
    }

    /// Returns the time of its last renewal.
    #[must_use]
    pub fn renewed(&self) -> Duration {
        Duration::from_nanos(self.renewed_nanoseconds.load(Ordering::Acquire))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ClientState> {
        lock(&self.state)
    }

    /// Returns the number of the state that the client knows by this name; none if it knows no
    /// state by it. The lock is taken only for names that another engine gave.
    pub(crate) fn number_of(&self, name: StateName) -> Option<u32> {
        match name.client == self.id {
            true => Some(name.number),
            false => self.state().holdings.number_of(self.id, name),
        }
    }

    /// Returns its state.
    ///
    /// # Errors
    /// [`Error::Expired`]: the client was forgotten.
    pub(crate) fn live(&self) -> Result<MutexGuard<'_, ClientState>> {
        let state = self.state();
        if state.standing == Standing::Gone { Err(Error::Expired) } else { Ok(state) }
    }

    pub(crate) fn recorded(&self) -> RecordedClient {
        let (protocol, channel) = (self.protocol, *self.channel());
        RecordedClient { protocol, channel, id: self.owner.clone() }
    }

    /// Returns the origin of the last call of its principal.
    #[must_use]
    pub fn origin(&self) -> Origin {
        *lock(&self.origin)
    }

    /// Notes that its principal now calls from this origin.
    pub(crate) fn move_to(&self, origin: Origin) {
        *lock(&self.origin) = origin;
    }

    /// Checks that a caller may act for the client. Callers of the client's origin may, and so may
    /// the client's own principal, whose origin may have changed.
    ///
    /// # Errors
    /// [`Error::Delay`]: the caller is another user with another origin. If the client has moved,
    /// the next call of its principal shows the new origin.
    pub(crate) fn admit(&self, caller: &Caller) -> Result<()> {
        if self.origin() == caller.origin {
            return Ok(());
        }
        if !self.is_principal(caller) {
            return Err(Error::Delay);
        }
        self.move_to(caller.origin);
        Ok(())
    }

    /// Returns its owner id and verifier.
    pub(crate) fn name(&self) -> ClientOwner {
        ClientOwner { verifier: self.verifier, id: self.owner.clone() }
    }

    /// Returns the record that lets it reclaim after a restart of the server.
    pub(crate) fn record(&self) -> Record {
        Record::Client(self.recorded(), Some(self.identity()))
    }

    /// Returns the record that lets it reclaim after a restart of the server, but not what it must
    /// not reclaim already.
    pub(crate) fn arrival_record(&self) -> Record {
        Record::Arrived(self.recorded(), Some(self.identity()))
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

/// Returns whether both are the same client object.
pub(crate) fn same(one: &Arc<Client>, other: &Arc<Client>) -> bool {
    Arc::ptr_eq(one, other)
}
