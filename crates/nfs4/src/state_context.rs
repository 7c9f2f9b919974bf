//! The way to what is remembered: from words of the wire to the engine's, and back.

use std::sync::Arc;
use std::time::Duration;

use comity_coherence::{Clock, Settle};
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
    /// The time the engine goes by.
    pub clock: Clock,
    /// The server's name: unique, and the same after every restart. Clients take two servers with
    /// one name for the same server (RFC 8881, 2.10.5).
    pub identity: Box<[u8]>,
    /// The callbacks to clients; without them nothing is delegated.
    pub callbacks: Option<Arc<Callbacks>>,
    /// Puts what the engine has recorded on stable storage, if that is to survive the server.
    pub settle: Option<Arc<Settle>>,
    /// Sleeps, while other threads serve what this one would; without it nobody is waited for.
    pub pause: Option<Arc<Sleep>>,
    /// Programs on the server that lock and open files, too, if those are looked at.
    pub locals: Option<Arc<dyn Locals>>,
    /// Takes copies that go on after they were answered; without it none do.
    pub copier: Option<Arc<Copier>>,
}

/// Sleeps for a moment.
pub type Sleep = dyn Fn(Duration) + Send + Sync;

impl Memory {
    /// The records that must be stored before an answer that depends on them is given; nearly
    /// always none.
    pub(crate) fn unstored(&self) -> Option<Wait> {
        let settle = self.settle.as_ref()?;
        self.engine.unstored().map(|mark| Wait::Record(Arc::clone(settle), mark))
    }

    /// Returns whether there is anything that must be stored first; costs a look at two numbers.
    pub(crate) fn is_behind(&self) -> bool {
        self.settle.is_some() && self.engine.unstored().is_some()
    }

    /// Says what is to be said to clients, and lets them have a moment to answer; false if there is
    /// nobody to wait so.
    #[must_use]
    pub fn wait_for_clients(&self, now: Duration, moment: Duration) -> bool {
        let (Some(callbacks), Some(pause)) = (&self.callbacks, &self.pause) else { return false };
        callbacks.pump(now);
        pause(moment);
        true
    }
}

/// Returns the principal and the origin of a call, to which state belongs.
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

/// The number that no user has (-1).
const NO_USER: u32 = u32::MAX;

/// A stateid as it travels.
pub(crate) const fn on_wire(stateid: Stateid) -> Stateid4 {
    Stateid4 { seqid: stateid.seqid, other: stateid.other }
}

/// A client's name.
pub(crate) fn owner_of(owner: &ClientOwner4<'_>) -> ClientOwner {
    ClientOwner { verifier: Verifier(owner.verifier), id: owner.id.0.into() }
}
