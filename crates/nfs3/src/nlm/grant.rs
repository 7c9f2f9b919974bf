//! GRANTED: a lock that a host waited for is free. The server takes it for the host and calls
//! the host.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use comity_coherence::Settle;
use comity_export::Exports;
use comity_proto::nlm::{Nlm4Lock, Nlm4Res, Nlm4Stats, Nlm4Testargs};
use comity_state::{Client, Effect, Engine, FileKey, HostLock, Locals, LockRequestKind, LockType};
use comity_xdr::{Decoder, Encoder, Opaque};

use super::owner::HostOwner;
use super::take;

/// Takes locks for the hosts that wait for them.
pub struct Grants {
    engine: Arc<Engine>,
    exports: Arc<Exports>,
    locals: Option<Arc<dyn Locals>>,
    settle: Option<Arc<Settle>>,
}

/// A lock that was taken for a waiting host. The caller has to call NLM_GRANTED of the host
/// (procedure [`comity_proto::nlm::procedure::GRANTED`]) with these arguments, and then
/// [`Grants::answered`] or [`Grants::withdraw`].
pub struct Grant {
    /// The host's address.
    pub address: IpAddr,
    /// The address of the server from which the host is called, if it is known: hosts
    /// ignore a grant that comes from another address.
    pub source: Option<IpAddr>,
    /// The arguments of the call, in XDR.
    pub arguments: Vec<u8>,
    client: Arc<Client>,
    owner: Box<[u8]>,
    file: FileKey,
    range: comity_state::ByteRange,
    kind: LockType,
}

impl Grants {
    /// Takes locks in `engine` of files of `exports`.
    #[must_use]
    pub const fn new(engine: Arc<Engine>, exports: Arc<Exports>) -> Self {
        Self { engine, exports, locals: None, settle: None }
    }

    /// Returns a copy that also keeps the locks from programs on the server.
    #[must_use]
    pub fn beside(self, locals: Option<Arc<dyn Locals>>) -> Self {
        Self { locals, ..self }
    }

    /// Returns a copy for which a loss outlives a restart: the earlier owner must not reclaim the
    /// lock.
    #[must_use]
    pub fn settling(self, settle: Arc<Settle>) -> Self {
        Self { settle: Some(settle), ..self }
    }

    /// Takes the lock that a host may have now, after a notice of the engine. Returns
    /// `None` if the notice is of another kind, if another owner was quicker, or if a
    /// record cannot be stored.
    pub fn take(&self, now: Duration, effect: Effect) -> Option<Grant> {
        let Effect::NotifyLock { client, owner, file, range, kind } = effect else { return None };
        let address = std::str::from_utf8(client.owner()).ok()?.parse().ok()?;
        let lock = HostLock { owner: &owner, file, range, kind };
        let kind_of_request = LockRequestKind::Offered;
        let take_it = || self.engine.lock_host(now, &client, &lock, kind_of_request);
        take(self.locals.as_deref(), (&client, &lock, kind_of_request), take_it).ok()?.ok()?;
        if !self.engine.is_settled(self.settle.as_deref()) {
            self.engine.withdraw_grant(now, &client, &lock);
            return None;
        }
        let (arguments, source) = (self.arguments(&lock), client.server_address());
        Some(Grant { address, source, arguments, client, owner, file, range, kind })
    }

    /// Handles the answer of the host. If the host does not want the lock any more or does
    /// not know of it, the lock is freed, unless the host has asked for it meanwhile and
    /// was answered. An answer that cannot be decoded leaves the lock to the host, which
    /// may believe that it has it.
    pub fn answered(&self, now: Duration, grant: &Grant, results: &[u8]) {
        match Decoder::whole::<Nlm4Res<'_>>(results).map(|said| said.stat) {
            Ok(Nlm4Stats::Granted) => self.engine.grant_known(&grant.client, &grant.lock()),
            Ok(_) => self.withdraw(now, grant),
            Err(_) => {}
        }
    }

    /// Frees the lock because the host cannot be reached. A host that was reached and did
    /// not answer keeps the lock: it asks again, cancels or unlocks.
    pub fn withdraw(&self, now: Duration, grant: &Grant) {
        self.engine.withdraw_grant(now, &grant.client, &grant.lock());
    }

    fn arguments(&self, lock: &HostLock<'_>) -> Vec<u8> {
        let sealed = self.exports.current().seal_key(&lock.file);
        let HostOwner { caller_name, svid, oh } = HostOwner::named(lock.owner);
        let last = lock.range.last;
        let mut encoder = Encoder::new();
        encoder.value(&Nlm4Testargs {
            // The length is a multiple of four: Linux echoes the cookie without its
            // padding.
            cookie: Opaque(b"lock"),
            exclusive: lock.kind == LockType::Write,
            alock: Nlm4Lock {
                caller_name,
                fh: Opaque(sealed.bytes()),
                oh,
                svid,
                l_offset: lock.range.first,
                l_len: if last == u64::MAX { 0 } else { last - lock.range.first + 1 },
            },
        });
        encoder.bytes().to_vec()
    }
}

impl Grant {
    fn lock(&self) -> HostLock<'_> {
        let Self { owner, file, range, kind, .. } = self;
        HostLock { owner, file: *file, range: *range, kind: *kind }
    }
}
