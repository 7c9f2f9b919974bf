use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use comity_credential::Channel;
use comity_rpc::{Backchannel, Dispatcher, Gate};

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// The peer's address.
    pub peer: SocketAddr,
    /// The address of this machine to which the peer connected, if the system could tell it.
    pub local: Option<SocketAddr>,
}

/// The programs that a server offers, and their data about peers.
pub trait Service: Send + Sync + 'static {
    /// The data about a peer, made once for each connection.
    type Visitor: Send + Sync + 'static;

    /// The gate that decides which peers may call.
    type Gate: Gate<Self::Visitor> + 'static;

    /// Returns whether a peer at this address may call more than procedure NULL. Connections are
    /// reserved for such peers. It must not block; it returns `false` while the answer is unknown.
    fn lists(&self, peer: IpAddr) -> bool {
        let _ = peer;
        true
    }

    /// Returns whether peers that are not listed are served like the others, without a pause after
    /// each call. Connections are still reserved for listed peers.
    fn serves_unlisted(&self) -> bool {
        false
    }

    /// Makes the data about a new peer; `line` is its back channel.
    fn visitor(&self, ends: Endpoints, line: &Arc<Backchannel>) -> Self::Visitor;

    /// Returns new data about a peer whose TLS handshake is finished, with the identity in
    /// `channel`. None if that changes nothing.
    fn secured(&self, visitor: &Self::Visitor, channel: Channel) -> Option<Self::Visitor> {
        let _ = (visitor, channel);
        None
    }

    /// Returns new data about a peer if its identity has changed since `visitor` was made, such as
    /// by new credentials. It is called before each record, so it must be cheap; the new data then
    /// replaces `visitor`.
    #[inline]
    fn renewed_visitor(&self, visitor: &Self::Visitor) -> Option<Self::Visitor> {
        let _ = visitor;
        None
    }

    /// The programs.
    fn dispatcher(&self) -> &Dispatcher<Self::Visitor, Self::Gate>;

    /// Handles a record that is not a call, such as the reply to a call of the server. `false` if
    /// no such reply is expected; the connection ends then.
    fn heard(&self, visitor: &Self::Visitor, record: &[u8]) -> bool {
        let _ = (visitor, record);
        false
    }
}
