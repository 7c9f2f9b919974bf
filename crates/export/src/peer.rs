use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use comity_credential::{AuthStat, Backchannel, Channel, CredentialRef, Origin};
use comity_keys::PublicKey;

use crate::limits::RESOLVED_CALLERS_MAX;
use crate::resolved_caller::ResolvedCaller;
use crate::rules_version::RulesVersion;
use crate::{Candidate, ExportId};

/// Why the gate refused a peer, and the time until which it need not decide again; none if only
/// another plan can change the decision.
pub(crate) type Refused = (AuthStat, Option<Instant>);

/// The peer of one connection, with the callers to which its credentials were resolved: the rules
/// and ids at an export are determined once and cached until they change.
pub struct RpcPeer {
    peer: SocketAddr,
    origin: Origin,
    channel: Channel,
    /// True if the peer may begin TLS on its connection.
    offers_tls: bool,
    local: Option<IpAddr>,
    line: Option<Arc<Backchannel>>,
    clientid: AtomicU64,
    /// The only exports that it may use, if a server calls in its name.
    confined: Option<Box<[ExportId]>>,
    /// The generation of the plan under which the gate admitted it; 0 if none did.
    admitted: AtomicU64,
    refused: Mutex<Option<(u64, Refused)>>,
    resolved: Mutex<ResolvedCallers>,
}

#[derive(Default)]
struct ResolvedCallers {
    version: RulesVersion,
    kept: Vec<Kept>,
    next: usize,
    recent: usize,
}

struct Kept {
    export: ExportId,
    /// The key of the credential, see [`CredentialRef::key`].
    credential: Box<[u8]>,
    resolved: Arc<ResolvedCaller>,
}

impl RpcPeer {
    /// Makes a peer at this address.
    #[must_use]
    pub fn new(peer: SocketAddr) -> Self {
        Self {
            peer,
            origin: Origin::of(peer.ip()),
            channel: Channel::Plain,
            offers_tls: false,
            local: None,
            line: None,
            clientid: AtomicU64::new(0),
            confined: None,
            admitted: AtomicU64::new(0),
            refused: Mutex::default(),
            resolved: Mutex::default(),
        }
    }

    /// Makes a peer at this address, which can be called back on `line`.
    #[must_use]
    pub fn on(peer: SocketAddr, line: &Arc<Backchannel>) -> Self {
        Self { line: Some(Arc::clone(line)), ..Self::new(peer) }
    }

    /// Sets the address of the server to which the peer is connected.
    #[must_use]
    pub fn at(self, local: Option<IpAddr>) -> Self {
        Self { local, ..self }
    }

    /// Lets the peer use these exports only.
    #[must_use]
    pub fn confined_to(self, exports: impl IntoIterator<Item = ExportId>) -> Self {
        Self { confined: Some(exports.into_iter().collect()), ..self }
    }

    /// Returns whether a server calls in its name.
    #[must_use]
    pub const fn is_confined(&self) -> bool {
        self.confined.is_some()
    }

    /// Returns whether it may use an export if the rules of the export admit it.
    #[must_use]
    pub fn may_use(&self, export: ExportId) -> bool {
        self.confined.as_ref().is_none_or(|exports| exports.contains(&export))
    }

    /// Sets whether the peer may begin TLS on its connection.
    #[must_use]
    pub fn offering_tls(self, offers_tls: bool) -> Self {
        Self { offers_tls, ..self }
    }

    /// Returns the same peer after it has proved the identity of `channel`. No earlier decision
    /// about it is kept.
    #[must_use]
    pub fn over(&self, channel: Channel) -> Self {
        let (local, line) = (self.local, self.line.clone());
        let origin = Origin::by(self.peer.ip(), &channel);
        Self { origin, channel, local, line, ..Self::new(self.peer) }
    }

    /// The channel of its connection, and the identity that it has proved.
    #[must_use]
    pub const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Returns the key that it has proved, if credentials support its algorithm.
    #[must_use]
    pub fn key(&self) -> Option<PublicKey> {
        self.channel.identity().and_then(|identity| identity.key.principal().copied())
    }

    /// Returns whether it may begin TLS now. After an admitted call it may not: the work begun in
    /// clear would continue under another identity.
    pub(crate) fn may_start_tls(&self) -> bool {
        let is_fresh = self.admitted.load(Ordering::Relaxed) == 0;
        self.offers_tls && is_fresh && !self.channel.is_tls()
    }

    /// Returns the address of the server to which it is connected, if that is known.
    #[must_use]
    pub const fn local(&self) -> Option<IpAddr> {
        self.local
    }

    /// Returns the back channel of its own connection, if there is one.
    #[must_use]
    pub const fn line(&self) -> Option<&Arc<Backchannel>> {
        self.line.as_ref()
    }

    /// Stores the clientid that it used. Only operations of NFSv4.0 on state call this.
    pub fn introduce(&self, clientid: u64) {
        self.clientid.store(clientid, Ordering::Relaxed);
    }

    /// Returns the clientid that it used last, if any.
    #[must_use]
    pub fn introduced(&self) -> Option<u64> {
        Some(self.clientid.load(Ordering::Relaxed)).filter(|clientid| *clientid != 0)
    }

    /// Returns its origin, which together with the principal determines the owner of a client's
    /// state.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Its address.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns whether the gate admitted it under the plan of this generation.
    #[inline]
    pub(crate) fn is_admitted(&self, generation: u64) -> bool {
        self.admitted.load(Ordering::Relaxed) == generation
    }

    /// Notes that the gate admitted it.
    pub(crate) fn admit(&self, generation: u64) {
        self.admitted.store(generation, Ordering::Relaxed);
    }

    /// Returns why the gate refused it under the plan of this generation, if the refusal is still
    /// valid.
    pub(crate) fn refusal(&self, generation: u64) -> Option<AuthStat> {
        let refused = *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, (why, until)) = refused.filter(|(under, _)| *under == generation)?;
        until.is_none_or(|until| Instant::now() < until).then_some(why)
    }

    /// Stores why the gate refused it.
    pub(crate) fn refuse(&self, generation: u64, refused: Refused) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, refused));
    }

    /// Returns the cached caller of a credential at an export under the rules of this version.
    #[inline]
    pub(crate) fn resolved(
        &self,
        version: RulesVersion,
        export: ExportId,
        credential: &CredentialRef<'_>,
    ) -> Option<Arc<ResolvedCaller>> {
        let mut all = self.kept();
        if all.version != version {
            return None;
        }
        let recent = all.kept.get(all.recent).filter(|kept| kept.is(export, credential));
        if let Some(kept) = recent {
            return Some(Arc::clone(&kept.resolved));
        }
        all.search(export, credential)
    }

    /// Caches the caller of a credential; the oldest entry is dropped if there are too many.
    pub(crate) fn keep(
        &self,
        version: RulesVersion,
        credential: &CredentialRef<'_>,
        resolved: &Arc<ResolvedCaller>,
    ) {
        let Some(key) = credential.key() else { return };
        let (export, resolved) = (resolved.export().id(), Arc::clone(resolved));
        let kept = Kept { export, credential: key.into(), resolved };
        let mut all = self.kept();
        if all.version != version {
            *all = ResolvedCallers { version, ..ResolvedCallers::default() };
        }
        let at = all.next % RESOLVED_CALLERS_MAX;
        (all.next, all.recent) = (at + 1, at);
        match all.kept.get_mut(at) {
            Some(place) => *place = kept,
            None => all.kept.push(kept),
        }
    }

    fn kept(&self) -> MutexGuard<'_, ResolvedCallers> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvedCallers {
    /// Finds a caller that is not the most recent one.
    #[inline(never)]
    fn search(
        &mut self,
        export: ExportId,
        credential: &CredentialRef<'_>,
    ) -> Option<Arc<ResolvedCaller>> {
        self.recent = self.kept.iter().position(|kept| kept.is(export, credential))?;
        self.kept.get(self.recent).map(|kept| Arc::clone(&kept.resolved))
    }
}

impl<'a> From<&'a RpcPeer> for Candidate<'a> {
    fn from(peer: &'a RpcPeer) -> Self {
        let identity = peer.channel().identity().map(|identity| &**identity);
        Self::new(peer.peer().ip(), identity)
    }
}

impl Kept {
    #[inline]
    fn is(&self, export: ExportId, credential: &CredentialRef<'_>) -> bool {
        self.export == export && credential.key() == Some(&*self.credential)
    }
}
