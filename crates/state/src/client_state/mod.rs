//! The state of one client, as plain data: owners, opens, locks, delegations, sessions and copies.

mod exported;
mod grant;
mod holdings;
mod offload;
mod owner;
mod state;

pub use exported::{ExportedKind, ExportedOwner, ExportedState};
pub(crate) use grant::UnacknowledgedGrant;
pub(crate) use holdings::Holdings;
pub(crate) use offload::Offload;
pub use offload::{BeginOffload, OffloadEnd};
pub(crate) use owner::Owner;
pub use owner::{OwnerKind, OwnerReply};
pub use state::Counts;
pub(crate) use state::{
    DelegationState, LockState, OpenState, State, StateKind, client_of_lock_owner, lock_owner,
};

use std::net::IpAddr;
use std::time::Duration;

use crate::channel::Creation;
use crate::{Error, Result, SessionId, Verifier};

/// Callback address of a client of minor version 0 (RFC 7530, 3.1.1.1 and 16.33).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallbackAddress {
    /// The RPC program.
    pub program: u32,
    /// The transport, as `tcp`.
    pub netid: Box<[u8]>,
    /// The universal address.
    pub address: Box<[u8]>,
    /// Number that the client wants in each callback.
    pub ident: u32,
}

/// The state of a client that changes.
pub(crate) struct ClientState {
    pub(crate) standing: Standing,
    /// The SETCLIENTID that waits for its confirmation: the first one, or a change of the callback
    /// address.
    pub(crate) announced: Option<Announced>,
    pub(crate) confirmed_by: Option<Verifier>,
    pub(crate) callback: Option<CallbackAddress>,
    pub(crate) creation: Creation,
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) sessions_made: u64,
    /// True if it has said RECLAIM_COMPLETE.
    pub(crate) reclaim_complete: bool,
    /// The address of the server that a host of NLM used last.
    pub(crate) server_address: Option<IpAddr>,
    /// Locks that a host of NLM may not know of.
    pub(crate) granted: Vec<UnacknowledgedGrant>,
    /// When it was last asked to keep fewer delegations.
    pub(crate) asked_any: Option<Duration>,
    pub(crate) holdings: crate::client_state::Holdings,
}

/// An announcement by SETCLIENTID that waits for its confirmation.
#[derive(Debug, Clone)]
pub(crate) struct Announced {
    pub(crate) confirm: Verifier,
    pub(crate) callback: CallbackAddress,
}

/// The stage of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has introduced itself and is not confirmed.
    Unconfirmed,
    /// It has a lease.
    Confirmed,
    /// It has been forgotten; operations that still refer to it fail.
    Gone,
}

impl ClientState {
    /// A state, whatever it is.
    pub(crate) fn at(&self, number: u32) -> Result<&State> {
        self.holdings.get(number).ok_or(Error::BadStateid)
    }
}

impl ClientState {
    /// Returns whether it has state that would be lost with it.
    pub(crate) fn has_state(&self) -> bool {
        !self.holdings.is_empty()
    }
}
