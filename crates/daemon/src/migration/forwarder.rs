//! The source's side of forwarding: calls of NFSv3 about exports that have moved go to the peers that
//! have them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use comity_export::{Exports, PeerServer, Referred, RpcPeer};
use comity_migrate::{MigrationClient, MigrationError, results};
use comity_nfs3::{CallForwarder, Forwarded};
use comity_rpc::Call;
use comity_server::{LogRateLimit, blocking_for_long};
use comity_tls::client::ClientIdentity;
use comity_xdr::Encoder;

use super::MovedExports;
use crate::limits::{FORWARD_CONNECTIONS_KEPT, FORWARD_PATIENCE, FORWARD_PAUSE};
use crate::tls::Tls;

/// Forwards calls to peers.
pub(crate) struct Forwarder {
    exports: Arc<Exports>,
    moved: Arc<MovedExports>,
    tls: Option<Arc<Tls>>,
    peers: Mutex<HashMap<Box<str>, PeerConnections>>,
}

/// The connections to a peer, each with one call at a time.
#[derive(Default)]
struct PeerConnections {
    idle: Vec<MigrationClient>,
    /// The time of the last attempt to connect, if it failed.
    failed: Option<Instant>,
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
        let (record, client) = (record(call), client.peer());
        let reply = blocking_for_long(|| {
            let idle = self.connections(peer, |all| all.idle.pop());
            let first = idle.and_then(|idle| self.send(peer, idle, (client, &record)));
            // The peer may have closed the connection because it was idle.
            first.unwrap_or_else(|| match self.connect(peer) {
                Some(new) => {
                    self.send(peer, new, (client, &record)).unwrap_or(Forwarded::NotAnswered)
                }
                None => Forwarded::NotSent,
            })
        });
        match reply {
            Forwarded::Answered(reply) if reply.is_empty() => Forwarded::NotAnswered,
            Forwarded::Answered(reply) => match results(&reply, call.header.xid) {
                Ok(results) => Forwarded::Answered(results.to_vec()),
                Err(_) => Forwarded::Refused,
            },
            other => other,
        }
    }

    /// Sends a call over a connection, which is kept if it still works; `None` if it does not.
    fn send(
        &self,
        peer: &PeerServer,
        mut connection: MigrationClient,
        (client, record): (std::net::SocketAddr, &[u8]),
    ) -> Option<Forwarded> {
        let outcome = match connection.forward(FORWARD_PATIENCE, client, record) {
            Ok(reply) => Forwarded::Answered(reply),
            Err(MigrationError::Failed(_, why)) => {
                log(peer, &why);
                Forwarded::NotSent
            }
            Err(why) => {
                log(peer, &why.to_string());
                return None;
            }
        };
        self.connections(peer, |all| {
            if all.idle.len() < FORWARD_CONNECTIONS_KEPT {
                all.idle.push(connection);
            }
        });
        Some(outcome)
    }

    /// Connects to a peer, unless that has failed just now.
    fn connect(&self, peer: &PeerServer) -> Option<MigrationClient> {
        let is_paused = |failed: Instant| failed.elapsed() < FORWARD_PAUSE;
        if self.connections(peer, |all| all.failed.is_some_and(is_paused)) {
            return None;
        }
        let tls = self.tls.as_deref()?;
        let identity = Arc::new(ClientIdentity::of_server(&tls.shown()));
        match MigrationClient::connect(peer, identity) {
            Ok(connection) => {
                self.connections(peer, |all| all.failed = None);
                Some(connection)
            }
            Err(why) => {
                log(peer, &why.to_string());
                self.connections(peer, |all| all.failed = Some(Instant::now()));
                None
            }
        }
    }

    fn connections<T>(
        &self,
        peer: &PeerServer,
        change: impl FnOnce(&mut PeerConnections) -> T,
    ) -> T {
        let mut peers: MutexGuard<'_, _> =
            self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        change(peers.entry(peer.name.clone()).or_default())
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
        told.filter(|outcome| !matches!(outcome, Forwarded::Answered(_))).count() == 0
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
