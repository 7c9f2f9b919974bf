//! The port by which the system of a host differs from its users.

use comity_export::RpcPeer;

/// Returns whether a caller is the system of its host, not one of its users: it has a port that
/// only the superuser can have there.
pub(crate) const fn is_system(visitor: &RpcPeer) -> bool {
    visitor.peer().port() < 1024
}
