//! A client as a plain value, for a move to another engine.

use std::time::Duration;

use crate::{
    CallbackAddress, Caller, ClientId, ClientOwner, ClientProtocol, CreatedSession, ExportedOwner,
    ExportedSession, ExportedState, Origin,
};

/// A confirmed client with all its state. It does not contain pending locks, recalls under way,
/// copies and unacknowledged grants: the clients and the server ask for them again.
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
    /// The callback address, in minor version 0.
    pub callback: Option<CallbackAddress>,
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
    /// Its sessions.
    pub sessions: Vec<ExportedSession>,
    /// Its owners, by number.
    pub owners: Vec<ExportedOwner>,
    /// Its states, by number.
    pub states: Vec<ExportedState>,
}
