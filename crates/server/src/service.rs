use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use comity_credential::Channel;
use comity_rpc::{Backchannel, Dispatcher, Gate};

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// The peer's address.
    pub peer: SocketAddr,
    /// The address of this machine that the peer connected to, if the system could still tell it.
    pub local: Option<SocketAddr>,
}

/// The programs that a server offers, and what it tells them about a peer.
pub trait Service: Send + Sync + 'static {
    /// The server's knowledge of a peer, made once for each connection.
    type Visitor: Send + Sync + 'static;

    /// The gate that decides which peers may call.
    type Gate: Gate<Self::Visitor> + 'static;

    /// Returns whether a peer at this address may call more than procedure NULL. Places for
    /// connections are reserved for such peers. Must not block; returns `false` while the answer is
    /// not known.
    fn lists(&self, peer: IpAddr) -> bool {
        let _ = peer;
        true
    }

    /// Greets a new peer; `line` is the way to call it back.
    fn visitor(&self, ends: Endpoints, line: &Arc<Backchannel>) -> Self::Visitor;

    /// Returns what is known of a peer whose TLS handshake is finished: it has proved what
    /// `channel` says. None if that changes nothing.
    fn secured(&self, visitor: &Self::Visitor, channel: Channel) -> Option<Self::Visitor> {
        let _ = (visitor, channel);
        None
    }

    /// Returns what is known of a peer now, if its identity has changed since `visitor` was made:
    /// by new credentials, say. Asked before each record, so it must be
    /// cheap; `visitor` then stands for the connection no more.
    #[inline]
    fn renewed_visitor(&self, visitor: &Self::Visitor) -> Option<Self::Visitor> {
        let _ = visitor;
        None
    }

    /// The programs.
    fn dispatcher(&self) -> &Dispatcher<Self::Visitor, Self::Gate>;

    /// A record came that is no call: the answer to one of ours, perhaps. `false` if nothing of the
    /// kind was asked for; the connection ends then.
    fn heard(&self, visitor: &Self::Visitor, record: &[u8]) -> bool {
        let _ = (visitor, record);
        false
    }
}
