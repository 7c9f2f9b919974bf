use std::net::IpAddr;

use comity_credential::PeerIdentity;

use crate::RpcPeer;

/// A peer as the entries of exports see it: the address that it comes from, and the identity that
/// it has proved.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    address: IpAddr,
    identity: Option<&'a PeerIdentity>,
}

impl<'a> Candidate<'a> {
    /// The address. One of IPv4 in the clothes of IPv6 is itself.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// The identity.
    pub(crate) const fn identity(&self) -> Option<&'a PeerIdentity> {
        self.identity
    }
}

/// A peer that has proved nothing.
impl From<IpAddr> for Candidate<'static> {
    fn from(address: IpAddr) -> Self {
        Self { address: address.to_canonical(), identity: None }
    }
}

impl<'a> From<&'a RpcPeer> for Candidate<'a> {
    fn from(peer: &'a RpcPeer) -> Self {
        let identity = peer.channel().identity().map(|identity| &**identity);
        Self { address: peer.peer().ip().to_canonical(), identity }
    }
}
