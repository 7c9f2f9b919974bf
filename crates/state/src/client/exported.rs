//! A client as a plain value, for a move to another engine.

use std::time::Duration;

use crate::{
    Announced, CallbackAddress, Caller, ClientId, ClientOwner, ClientProtocol, CreatedSession,
    ExportedGrant, ExportedOwner, ExportedSession, ExportedState, Origin, RecordedClient, Verifier,
};

/// A confirmed client with its state. It does not contain the locks that its owners wait for, whose
/// order belongs to the file; the address by which a host of NLM knows the server, which changes;
/// and what only reports show (its address, the time at which it came).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedClient {
    /// Its clientid.
    pub id: ClientId,
    /// Number of clientids that the engine had given out. The new engine gives none of them to
    /// another client.
    pub given_out: u32,
    /// The protocol by which it introduced itself.
    pub protocol: ClientProtocol,
    /// Its name and its verifier.
    pub name: ClientOwner,
    /// The caller that introduced it.
    pub introduced_by: Caller,
    /// The origin of its last call.
    pub origin: Origin,
    /// Time since it renewed its lease.
    pub silent: Duration,
    /// True if its lease had expired at the last tick.
    pub courteous: bool,
    /// Time since SEQUENCE told it of its last revocation, if it did.
    pub told: Option<Duration>,
    /// The callback address, in minor version 0.
    pub callback: Option<CallbackAddress>,
    /// The SETCLIENTID that is not confirmed yet, by which its callback address changes.
    pub announced: Option<Announced>,
    /// The verifier of its last SETCLIENTID_CONFIRM.
    pub confirmed_by: Option<Verifier>,
    /// True if it has said RECLAIM_COMPLETE.
    pub reclaim_complete: bool,
    /// The state of a host's status monitor.
    pub monitor_state: i32,
    /// The sequence of its last CREATE_SESSION.
    pub create_sequenceid: u32,
    /// The reply to that CREATE_SESSION.
    pub created: Option<CreatedSession>,
    /// Number of sessions that it has made so far.
    pub sessions_made: u64,
    /// The last number that was given to a state, an owner or a copy of it. The new engine goes on
    /// from there, and the old one elsewhere.
    pub last_number: u32,
    /// Locks of a host of NLM whose grants it has not acknowledged.
    pub granted: Vec<ExportedGrant>,
    /// Its sessions; none if it keeps them at the first engine.
    pub sessions: Vec<ExportedSession>,
    /// Its owners, by number.
    pub owners: Vec<ExportedOwner>,
    /// Its states, by number.
    pub states: Vec<ExportedState>,
}

impl ExportedClient {
    /// Returns the name under which an engine knows it.
    #[must_use]
    pub fn recorded(&self) -> RecordedClient {
        self.name.by(self.protocol, self.introduced_by)
    }
}
