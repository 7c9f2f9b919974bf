use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use comity_rpc::{Backchannel, Dispatcher, Gate};

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// Who came.
    pub peer: SocketAddr,
    /// To which address of this machine, if the system could still say it.
    pub local: Option<SocketAddr>,
}

/// What is served: programs, and what they are told of a peer.
pub trait Service: Send + Sync + 'static {
    /// What is known of a peer, made once for each connection.
    type Visitor: Send + Sync + 'static;

    /// Who decides which peers may call.
    type Gate: Gate<Self::Visitor> + 'static;

    /// Whether a peer at this address has anything to expect here but procedure NULL. Places for
    /// connections are kept for such peers. Must not block; what is not known yet is `false`.
    fn lists(&self, peer: IpAddr) -> bool {
        let _ = peer;
        true
    }

    /// Greets a new peer; `line` is the way to call it back.
    fn visitor(&self, ends: Endpoints, line: &Arc<Backchannel>) -> Self::Visitor;

    /// The programs.
    fn dispatcher(&self) -> &Dispatcher<Self::Visitor, Self::Gate>;

    /// A record came that is no call: the answer to one of ours, perhaps. `false` if nothing of the
    /// kind was asked for; the connection ends then.
    fn heard(&self, visitor: &Self::Visitor, record: &[u8]) -> bool {
        let _ = (visitor, record);
        false
    }
}
