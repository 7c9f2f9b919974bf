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

/// Why the gate refused a peer, and until when it need not judge again; without end if only another
/// plan can change it.
pub(crate) type Refused = (AuthStat, Option<Instant>);

/// One connection's peer, with the callers that its credentials were resolved to: the rules and ids
/// at an export are decided once and kept until these change.
pub struct RpcPeer {
    peer: SocketAddr,
    origin: Origin,
    channel: Channel,
    /// The peer may begin TLS on its connection.
    offers_tls: bool,
    local: Option<IpAddr>,
    line: Option<Arc<Backchannel>>,
    clientid: AtomicU64,
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
    /// A peer at this address.
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
            admitted: AtomicU64::new(0),
            refused: Mutex::default(),
            resolved: Mutex::default(),
        }
    }

    /// A peer at this address, which can be called back on `line`.
    #[must_use]
    pub fn on(peer: SocketAddr, line: &Arc<Backchannel>) -> Self {
        Self { line: Some(Arc::clone(line)), ..Self::new(peer) }
    }

    /// The same peer, connected to this address of the server.
    #[must_use]
    pub fn at(self, local: Option<IpAddr>) -> Self {
        Self { local, ..self }
    }

    /// The same peer, which may begin TLS on its connection if it asks for that.
    #[must_use]
    pub fn offering_tls(self, offers_tls: bool) -> Self {
        Self { offers_tls, ..self }
    }

    /// The same peer after it has proved what `channel` says. Nothing that was decided about it
    /// before holds for it now.
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

    /// The key that it has proved, if that is of an algorithm that credentials know.
    #[must_use]
    pub fn key(&self) -> Option<PublicKey> {
        self.channel.identity().and_then(|identity| identity.key.principal().copied())
    }

    /// Returns whether it may begin TLS now. After an admitted call it may not: work begun in clear
    /// would go on under another identity.
    pub(crate) fn may_start_tls(&self) -> bool {
        let is_fresh = self.admitted.load(Ordering::Relaxed) == 0;
        self.offers_tls && is_fresh && !self.channel.is_tls()
    }

    /// The address of the server that it is connected to, if that is known.
    #[must_use]
    pub const fn local(&self) -> Option<IpAddr> {
        self.local
    }

    /// The way to call it back over its own connection, if there is one.
    #[must_use]
    pub const fn line(&self) -> Option<&Arc<Backchannel>> {
        self.line.as_ref()
    }

    /// Keeps the clientid that it used, as only operations of NFSv4.0 on state do.
    pub fn introduce(&self, clientid: u64) {
        self.clientid.store(clientid, Ordering::Relaxed);
    }

    /// The clientid that it used last, if any.
    #[must_use]
    pub fn introduced(&self) -> Option<u64> {
        Some(self.clientid.load(Ordering::Relaxed)).filter(|clientid| *clientid != 0)
    }

    /// Its origin, which decides with the principal whose a client's state is.
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

    /// Keeps that the gate admitted it.
    pub(crate) fn admit(&self, generation: u64) {
        self.admitted.store(generation, Ordering::Relaxed);
    }

    /// Why the gate refused it under the plan of this generation, if it did and that still holds.
    pub(crate) fn refusal(&self, generation: u64) -> Option<AuthStat> {
        let refused = *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, (why, until)) = refused.filter(|(under, _)| *under == generation)?;
        until.is_none_or(|until| Instant::now() < until).then_some(why)
    }

    /// Keeps why the gate refused it.
    pub(crate) fn refuse(&self, generation: u64, refused: Refused) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, refused));
    }

    /// The caller that a credential was resolved to at an export by the rules of this version.
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
        all.recent = all.kept.iter().position(|kept| kept.is(export, credential))?;
        all.kept.get(all.recent).map(|kept| Arc::clone(&kept.resolved))
    }

    /// Keeps what a credential was resolved to; the oldest makes room.
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
