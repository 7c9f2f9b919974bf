//! The state of clients as the operations use it: the engine, its environment, and conversions
//! between encoded values and the engine's.

use std::sync::Arc;
use std::time::Duration;

use comity_coherence::{Clock, Settle, WaitForClients};
use comity_credential::{AuthStat, CredentialRef, Flavor};
use comity_export::RpcPeer;
use comity_proto::nfs4::{ClientOwner4, Stateid4};
use comity_state::{Caller, ClientOwner, Engine, Locals, Principal, Stateid, Verifier};

use crate::async_copy::Copier;
use crate::callback::Callbacks;
use crate::deferred_reply::Wait;

/// The state of clients, and the parts of the program that depend on it.
#[derive(Clone)]
pub struct Memory {
    /// The engine that keeps the state.
    pub engine: Arc<Engine>,
    /// The clock of the engine.
    pub clock: Clock,
    /// The names by which clients tell servers apart.
    pub identity: ServerIdentity,
    /// The callbacks to clients. Without them nothing is delegated.
    pub callbacks: Option<Arc<Callbacks>>,
    /// Stores the engine's records on stable storage; none if the state does not survive the
    /// server.
    pub settle: Option<Arc<Settle>>,
    /// Sleeps while other threads serve this thread's connections. Without it no operation waits
    /// for a client.
    pub pause: Option<Arc<Sleep>>,
    /// Locks and leases in the file system against programs on the server; none if programs are
    /// ignored.
    pub locals: Option<Arc<dyn Locals>>,
    /// Accepts asynchronous copies. Without it all copies are synchronous.
    pub copier: Option<Arc<Copier>>,
}

/// The names of a server, which stay the same after a restart.
#[derive(Clone)]
pub struct ServerIdentity {
    /// The `server_owner`, which is unique: clients take two servers with one owner for the same
    /// server (RFC 8881, 2.10.5).
    pub owner: Box<[u8]>,
    /// The `server_scope`: state of clients may move between servers with one scope (RFC 8881,
    /// 2.10.4).
    pub scope: Box<[u8]>,
}

impl ServerIdentity {
    /// Returns the names of a server that shares its scope with no other one.
    #[must_use]
    pub fn alone(name: &[u8]) -> Self {
        Self { owner: name.into(), scope: name.into() }
    }
}

/// Sleeps for a moment.
pub type Sleep = dyn Fn(Duration) + Send + Sync;

impl Memory {
    /// Returns the records that must be stored before a reply is sent; nearly always none.
    pub(crate) fn unstored(&self) -> Option<Wait> {
        let settle = self.settle.as_ref()?;
        self.engine.unstored().map(|mark| Wait::Record(Arc::clone(settle), mark))
    }

    /// Returns whether there are records that must be stored first. The cost is two atomic loads.
    pub(crate) fn is_behind(&self) -> bool {
        self.settle.is_some() && self.engine.unstored().is_some()
    }

    /// Sends the engine's messages to clients, and gives them a moment to answer. Returns false if
    /// this server cannot wait.
    #[must_use]
    pub fn wait_for_clients(&self, now: Duration, moment: Duration) -> bool {
        let (Some(callbacks), Some(pause)) = (&self.callbacks, &self.pause) else { return false };
        callbacks.pump(now);
        pause(moment);
        true
    }
}

impl WaitForClients for Memory {
    fn wait_for_clients(&self, now: Duration, moment: Duration) -> bool {
        Self::wait_for_clients(self, now, moment)
    }
}

/// Returns the principal and the origin of a call, to which new state belongs.
///
/// # Errors
/// The reason why the credential cannot be used.
pub(crate) fn caller_of(
    visitor: &RpcPeer,
    credential: &CredentialRef<'_>,
) -> Result<Caller, AuthStat> {
    let principal = match credential {
        CredentialRef::None => Principal::new(Flavor::NONE.0, NO_USER),
        CredentialRef::Sys(sys) => Principal::new(Flavor::SYS.0, sys.uid()),
        CredentialRef::Unusable(why) => return Err(*why),
    };
    Ok(Caller { principal, origin: visitor.origin() })
}

/// The uid that no user has (-1).
const NO_USER: u32 = u32::MAX;

/// Returns a stateid as it is encoded.
pub(crate) const fn on_wire(stateid: Stateid) -> Stateid4 {
    Stateid4 { seqid: stateid.seqid, other: stateid.other }
}

/// Converts a client's name.
pub(crate) fn owner_of(owner: &ClientOwner4<'_>) -> ClientOwner {
    ClientOwner { verifier: Verifier(owner.verifier), id: owner.id.0.into() }
}
