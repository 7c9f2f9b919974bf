use std::net::SocketAddr;

use comity_rpc::Dispatcher;

/// What is served: programs, and what they are told of a peer.
pub trait Service: Send + Sync + 'static {
    /// What is known of a peer, made once for each connection.
    type Visitor: Send + Sync + 'static;

    /// Greets a new peer.
    fn visitor(&self, peer: SocketAddr) -> Self::Visitor;

    /// The programs.
    fn dispatcher(&self) -> &Dispatcher<Self::Visitor>;
}
