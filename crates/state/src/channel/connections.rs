//! Connections of a session, and the direction in which each carries requests.

use crate::ConnectionId;
use crate::limits::CONNECTIONS_MAX;

/// The side whose requests a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Requests of the client.
    Fore,
    /// Requests of the server (callbacks).
    Back,
    /// Requests of both sides.
    Both,
}

impl Direction {
    pub(crate) const fn is_back(self) -> bool {
        matches!(self, Self::Back | Self::Both)
    }
}

/// The connections of a session. Their number is bounded, and a new one beyond the bound replaces
/// the oldest. A client that sends a request on a connection that was replaced binds it again.
#[derive(Debug, Default)]
pub(crate) struct Connections(Vec<(ConnectionId, Direction)>);

impl Connections {
    pub(crate) fn back(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.0.iter().filter(|(_, direction)| direction.is_back()).map(|(id, _)| *id)
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn bind(&mut self, id: ConnectionId, direction: Direction) {
        self.0.retain(|(other, _)| *other != id);
        if self.0.len() >= CONNECTIONS_MAX {
            self.0.remove(0);
        }
        self.0.push((id, direction));
    }

    pub(crate) fn has(&self, id: ConnectionId) -> bool {
        self.0.iter().any(|(other, _)| *other == id)
    }

    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.0.retain(|(other, _)| *other != id);
    }
}
