//! The clients of one origin share what one peer may have, however many names it makes up.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Origin;
use crate::pool::PoolShare;

/// What all clients of an origin have together of the memory that is shared with others.
#[derive(Clone, Default)]
pub(crate) struct Peer {
    /// Of the memory for replies.
    pub(crate) replies: Arc<PoolShare>,
    /// Of the memory for what clients hold.
    pub(crate) held: Arc<PoolShare>,
}

/// The networks that clients came from.
#[derive(Default)]
pub(crate) struct Peers(HashMap<Origin, (usize, Peer)>);

impl Peers {
    /// Counts one client more.
    pub(crate) fn enter(&mut self, origin: Origin) -> Peer {
        let (clients, peer) = self.0.entry(origin.network()).or_default();
        *clients += 1;
        peer.clone()
    }

    /// Counts one client less.
    pub(crate) fn leave(&mut self, origin: Origin) {
        let Some((clients, _)) = self.0.get_mut(&origin.network()) else { return };
        *clients -= 1;
        if *clients == 0 {
            self.0.remove(&origin.network());
        }
    }

    pub(crate) fn clients_from(&self, origin: Origin) -> usize {
        self.0.get(&origin.network()).map_or(0, |(clients, _)| *clients)
    }
}
