use std::net::SocketAddr;
use std::sync::Arc;

use comity_rpc::{Dispatcher, Line};

/// What is served: programs, and what they are told of a peer.
pub trait Service: Send + Sync + 'static {
    /// What is known of a peer, made once for each connection.
    type Visitor: Send + Sync + 'static;

    /// Greets a new peer; `line` is the way to call it back.
    fn visitor(&self, peer: SocketAddr, line: &Arc<Line>) -> Self::Visitor;

    /// The programs.
    fn dispatcher(&self) -> &Dispatcher<Self::Visitor>;

    /// A record came that is no call: the answer to one of ours, perhaps. `false` if nothing of the
    /// kind was asked for; the connection ends then.
    fn heard(&self, visitor: &Self::Visitor, record: &[u8]) -> bool {
        let _ = (visitor, record);
        false
    }
}
