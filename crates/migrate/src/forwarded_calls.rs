use std::net::SocketAddr;

use comity_export::PeerServer;
use comity_programs::CallFailure;

use crate::ForwardingHosts;

/// The server that answers calls of clients which still use the server that an export has left.
pub trait ForwardedCalls: Send + Sync {
    /// Answers a call, an RPC message without a record mark, of a client at this address. Only
    /// exports that this peer has handed over can be used. Returns the reply, an RPC message
    /// without a record mark; it is empty if the client gets none.
    ///
    /// # Errors
    /// [`CallFailure`]; the call was not executed then.
    fn answer(
        &self,
        from: &PeerServer,
        client: SocketAddr,
        call: &[u8],
    ) -> Result<Vec<u8>, CallFailure>;

    /// Returns the hosts that have locks in exports which this peer has handed over. They know this
    /// server by the addresses of the peer.
    fn hosts(&self, from: &PeerServer) -> ForwardingHosts;
}
