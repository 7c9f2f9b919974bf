//! The source's side of forwarding: calls of NFSv3 about exports that have moved go to the peers
//! that have them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use comity_export::{Exports, PeerServer, Referred, RpcPeer};
use comity_migrate::{MigrationClient, MigrationError, results};
use comity_nfs3::{CallForwarder, Forwarded};
use comity_rpc::Call;
use comity_server::{LogRateLimit, blocking_for_long};
use comity_tls::client::ClientIdentity;
use comity_xdr::Encoder;

use super::MovedExports;
use crate::limits::{FORWARD_PATIENCE, FORWARD_PAUSE, FORWARDED_CALLS_MAX};
use crate::tls::Tls;

/// Forwards calls to peers.
pub(crate) struct Forwarder {
    exports: Arc<Exports>,
    moved: Arc<MovedExports>,
    tls: Option<Arc<Tls>>,
    peers: Mutex<HashMap<Box<str>, PeerConnections>>,
}

/// The connections to a peer, each with one call at a time.
struct PeerConnections {
    /// The peer as it was when they were made.
    peer: PeerServer,
    /// The number of calls that are being forwarded.
    calls: usize,
    idle: Vec<MigrationClient>,
    /// The time at which the peer was found not to answer.
    failed: Option<Instant>,
}

impl PeerConnections {
    const fn new(peer: PeerServer) -> Self {
        Self { peer, calls: 0, idle: Vec::new(), failed: None }
    }

    /// Begins a call, unless so many are being forwarded already, or the peer has not answered just
    /// now. A peer that hangs must not hold all threads of this server.
    fn begin(&mut self) -> bool {
        let begins = self.calls < FORWARDED_CALLS_MAX && !self.is_paused();
        self.calls += usize::from(begins);
        begins
    }

    /// Returns whether the peer has not answered just now.
    fn is_paused(&self) -> bool {
        self.failed.is_some_and(|failed| failed.elapsed() < FORWARD_PAUSE)
    }

    /// Closes all connections, and pauses.
    fn fail(&mut self) {
        self.idle.clear();
        self.failed = Some(Instant::now());
    }
}

impl Forwarder {
    pub(crate) fn new(
        exports: &Arc<Exports>,
        moved: &Arc<MovedExports>,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let (exports, moved) = (Arc::clone(exports), Arc::clone(moved));
        Self { exports, moved, tls, peers: Mutex::default() }
    }

    /// Returns the peer to which calls about an export are forwarded.
    fn peer(&self, referred: Referred) -> Option<PeerServer> {
        let plan = self.exports.current();
        let absent = plan.absent(referred)?;
        let name = self.moved.forwarded_to(absent.export().path())?;
        plan.peer_named(&name).cloned()
    }

    fn exchange(&self, peer: &PeerServer, client: &RpcPeer, call: &Call<'_>) -> Forwarded {
        // A peer could not know what a client has proved to this server.
        if client.channel().is_tls() {
            return Forwarded::Refused;
        }
        if !self.connections(peer, PeerConnections::begin) {
            return Forwarded::NotSent;
        }
        let record = record(call);
        let outcome = blocking_for_long(|| self.send_twice(peer, (client.peer(), &record)));
        self.connections(peer, |all| all.calls = all.calls.saturating_sub(1));
        match outcome {
            Forwarded::Answered(reply) => answered(peer, &reply, call.header.xid),
            other => other,
        }
    }

    /// Sends a call over a kept connection, and again over a new one if the peer has closed that,
    /// for example because it was idle. The peer recognizes a call that it gets twice.
    fn send_twice(&self, peer: &PeerServer, call: (SocketAddr, &[u8])) -> Forwarded {
        let idle = self.connections(peer, |all| all.idle.pop());
        let is_first = idle.is_none();
        if let Some(outcome) = idle.and_then(|idle| self.send(peer, idle, call)) {
            return outcome;
        }
        if self.connections(peer, |all| all.is_paused()) {
            return Forwarded::NotAnswered;
        }
        let outcome = self.connect(peer).map(|new| self.send(peer, new, call));
        match outcome {
            Some(None) => Forwarded::NotAnswered,
            None | Some(Some(Forwarded::NotSent)) if !is_first => Forwarded::NotAnswered,
            None => Forwarded::NotSent,
            Some(Some(outcome)) => outcome,
        }
    }

    /// Sends a call over a connection, which is kept if it still works; `None` if it does not.
    fn send(
        &self,
        peer: &PeerServer,
        mut connection: MigrationClient,
        (client, record): (SocketAddr, &[u8]),
    ) -> Option<Forwarded> {
        let outcome = match connection.forward(FORWARD_PATIENCE, client, record) {
            Ok(reply) => Forwarded::Answered(reply),
            Err(MigrationError::Failed(_, why)) => {
                log(peer, &why);
                Forwarded::NotSent
            }
            Err(why) => {
                log(peer, &why.to_string());
                // A peer that refuses the program has not looked at the call.
                let is_refused =
                    matches!(why, MigrationError::Refused | MigrationError::UnknownProcedure);
                if is_refused || matches!(why, MigrationError::Silent(..)) {
                    self.connections(peer, PeerConnections::fail);
                }
                return is_refused.then_some(Forwarded::NotSent);
            }
        };
        self.connections(peer, |all| {
            if all.peer == *peer && all.idle.len() < FORWARDED_CALLS_MAX {
                all.idle.push(connection);
            }
        });
        Some(outcome)
    }

    /// Connects to a peer.
    fn connect(&self, peer: &PeerServer) -> Option<MigrationClient> {
        let tls = self.tls.as_deref()?;
        let identity = Arc::new(ClientIdentity::of_server(&tls.shown()));
        match MigrationClient::connect(peer, identity) {
            Ok(connection) => {
                self.connections(peer, |all| all.failed = None);
                Some(connection)
            }
            Err(why) => {
                log(peer, &why.to_string());
                self.connections(peer, PeerConnections::fail);
                None
            }
        }
    }

    fn connections<T>(
        &self,
        peer: &PeerServer,
        change: impl FnOnce(&mut PeerConnections) -> T,
    ) -> T {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || PeerConnections::new(peer.clone());
        let connections = peers.entry(peer.name.clone()).or_insert_with(new);
        if connections.peer != *peer {
            *connections = PeerConnections { calls: connections.calls, ..new() };
        }
        change(connections)
    }
}

impl CallForwarder for Forwarder {
    fn forwards(&self, referred: Referred) -> bool {
        self.peer(referred).is_some()
    }

    fn forward(&self, referred: Referred, client: &RpcPeer, call: &Call<'_>) -> Forwarded {
        match self.peer(referred) {
            Some(peer) => self.exchange(&peer, client, call),
            None => Forwarded::NotSent,
        }
    }

    fn forward_to_all(&self, host: &RpcPeer, call: &Call<'_>) -> bool {
        let names = self.moved.all_forwarded_to();
        let peers: Vec<PeerServer> = {
            let plan = self.exports.current();
            names.iter().filter_map(|name| plan.peer_named(name).cloned()).collect()
        };
        let told = peers.iter().map(|peer| self.exchange(peer, host, call));
        // A peer that refuses the host has no lock of it.
        let is_told = |it: &Forwarded| matches!(it, Forwarded::Answered(_) | Forwarded::Refused);
        told.filter(|outcome| !is_told(outcome)).count() == 0
    }
}

/// Returns the outcome of a call with this reply.
fn answered(peer: &PeerServer, reply: &[u8], xid: u32) -> Forwarded {
    /// `MSG_DENIED` (RFC 5531, section 9), after the xid and the type.
    const DENIED: [u8; 4] = [0, 0, 0, 1];
    if reply.is_empty() {
        return Forwarded::NotAnswered;
    }
    match results(reply, xid) {
        Ok(results) => Forwarded::Answered(results.to_vec()),
        Err(_) if reply.get(8..12) == Some(&DENIED) => {
            log(peer, "it refuses a client that this server admits");
            Forwarded::Refused
        }
        Err(_) => {
            log(peer, "it failed");
            Forwarded::Failed
        }
    }
}

/// Returns the bytes of a call, without a record mark.
fn record(call: &Call<'_>) -> Vec<u8> {
    let mut record = Encoder::new();
    record.value(&call.header);
    record.raw(call.arguments);
    record.bytes().to_vec()
}

fn log(peer: &PeerServer, why: &str) {
    static LOG: LogRateLimit = LogRateLimit::new();
    let peer = &peer.name;
    LOG.say(|suppressed| tracing::warn!(%peer, suppressed, "calls cannot be forwarded: {why}"));
}
