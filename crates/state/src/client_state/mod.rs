//! The state of one client, as plain data: owners, opens, locks, delegations, sessions and copies.

mod exported;
mod foreign_names;
mod grant;
mod holdings;
mod moved;
mod offload;
mod owner;
mod revocation;
mod state;

pub use exported::{ExportedGrant, ExportedKind, ExportedOwner, ExportedState};
pub(crate) use grant::UnacknowledgedGrant;
pub(crate) use holdings::Holdings;
pub(crate) use moved::Moves;
pub(crate) use offload::Offload;
pub use offload::{BeginOffload, OffloadEnd};
pub(crate) use owner::Owner;
pub use owner::{OwnerKind, OwnerReply};
pub(crate) use revocation::RevokedCounts;
pub use revocation::{Revocation, RevokedState};
pub use state::HeldCounts;
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
    /// The transport, such as `tcp`.
    pub netid: Box<[u8]>,
    /// The universal address.
    pub address: Box<[u8]>,
    /// The `callback_ident` that the client expects in each callback.
    pub ident: u32,
}

/// The variable part of a client, behind its lock.
pub(crate) struct ClientState {
    pub(crate) standing: Standing,
    /// The SETCLIENTID that is not confirmed yet: the client's first one, or a change of its
    /// callback address.
    pub(crate) announced: Option<Announced>,
    pub(crate) confirmed_by: Option<Verifier>,
    pub(crate) callback: Option<CallbackAddress>,
    pub(crate) creation: Creation,
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) sessions_made: u64,
    /// True if it has sent RECLAIM_COMPLETE.
    pub(crate) reclaim_complete: bool,
    /// The address of the server that a host of NLM used last.
    pub(crate) server_address: Option<IpAddr>,
    /// Locks of a host of NLM whose grants it has not acknowledged.
    pub(crate) granted: Vec<UnacknowledgedGrant>,
    /// Time of the last CB_RECALL_ANY.
    pub(crate) asked_any: Option<Duration>,
    /// Exports of which it has to hear that they have moved.
    pub(crate) moved: Moves,
    pub(crate) holdings: crate::client_state::Holdings,
}

/// A SETCLIENTID that waits for its confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// The verifier that SETCLIENTID_CONFIRM must present.
    pub confirm: Verifier,
    /// The callback address that the client gets then.
    pub callback: CallbackAddress,
}

/// The stage of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The client was introduced and is not confirmed.
    Unconfirmed,
    /// The client is confirmed.
    Confirmed,
    /// The client was forgotten. Operations that still refer to it fail.
    Gone,
}

impl ClientState {
    /// Returns a state of any kind.
    pub(crate) fn at(&self, number: u32) -> Result<&State> {
        self.holdings.get(number).ok_or(Error::BadStateid)
    }
}

impl ClientState {
    /// Returns whether the client would lose state if it were forgotten.
    pub(crate) fn has_state(&self) -> bool {
        !self.holdings.is_empty()
    }
}
