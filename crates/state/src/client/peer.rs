//! Clients of one origin share the memory that one peer may use, even if it presents many names.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::Origin;
use crate::memory_pool::PoolShare;

/// The shares of the common memory that all clients of an origin use together.
#[derive(Clone, Default)]
pub(crate) struct Peer {
    /// The share of the memory for replies.
    pub(crate) replies: Arc<PoolShare>,
    /// The share of the memory for state.
    pub(crate) held: Arc<PoolShare>,
}

/// The origins from which clients came.
#[derive(Default)]
pub(crate) struct Peers(HashMap<Origin, Network>);

/// Clients of one origin.
#[derive(Default)]
struct Network {
    clients: usize,
    peer: Peer,
    refused_until: Duration,
}

impl Peers {
    /// Adds one to the clients of an origin; returns their shares.
    pub(crate) fn enter(&mut self, origin: Origin) -> Peer {
        let network = self.0.entry(origin.network()).or_default();
        network.clients += 1;
        network.peer.clone()
    }

    /// Subtracts one from the clients of an origin.
    pub(crate) fn leave(&mut self, origin: Origin) {
        let Some(network) = self.0.get_mut(&origin.network()) else { return };
        network.clients -= 1;
        if network.clients == 0 {
            self.0.remove(&origin.network());
        }
    }

    pub(crate) fn clients_from(&self, origin: Origin) -> usize {
        self.0.get(&origin.network()).map_or(0, |network| network.clients)
    }

    /// Notes that no client could be evicted for a new one of this origin. An origin without
    /// clients is not stored.
    pub(crate) fn refuse(&mut self, origin: Origin, until: Duration) {
        if let Some(network) = self.0.get_mut(&origin.network()) {
            network.refused_until = until;
        }
    }

    /// Returns the time until which new clients of this origin are refused without a search.
    pub(crate) fn refused_until(&self, origin: Origin) -> Duration {
        self.0.get(&origin.network()).map_or(Duration::ZERO, |network| network.refused_until)
    }
}
