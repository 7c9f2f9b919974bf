//! The clients of one origin share what one peer may have, however many names it makes up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::Origin;
use crate::memory_pool::PoolShare;

/// Shares of the common memory that all clients of an origin have together.
#[derive(Clone, Default)]
pub(crate) struct Peer {
    /// Of the memory for replies.
    pub(crate) replies: Arc<PoolShare>,
    /// Of the memory for what clients hold.
    pub(crate) held: Arc<PoolShare>,
}

/// The networks that clients came from.
#[derive(Default)]
pub(crate) struct Peers(HashMap<Origin, Network>);

/// One of these networks.
#[derive(Default)]
struct Network {
    clients: usize,
    peer: Peer,
    refused_until: Duration,
}

impl Peers {
    /// Counts one client more.
    pub(crate) fn enter(&mut self, origin: Origin) -> Peer {
        let network = self.0.entry(origin.network()).or_default();
        network.clients += 1;
        network.peer.clone()
    }

    /// Counts one client less.
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

    /// Notes that no client could go for this origin. An origin without clients is not remembered.
    pub(crate) fn refuse(&mut self, origin: Origin, until: Duration) {
        if let Some(network) = self.0.get_mut(&origin.network()) {
            network.refused_until = until;
        }
    }

    /// Returns the time until which it is refused at once.
    pub(crate) fn refused_until(&self, origin: Origin) -> Duration {
        self.0.get(&origin.network()).map_or(Duration::ZERO, |network| network.refused_until)
    }
}
