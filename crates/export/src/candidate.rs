use std::net::IpAddr;

use comity_credential::PeerIdentity;

/// A peer as the entries of exports see it: the address that it comes from, and the identity that
/// it has proved.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    address: IpAddr,
    identity: Option<&'a PeerIdentity>,
}

impl<'a> Candidate<'a> {
    /// A peer at this address that has proved an identity.
    pub(crate) fn new(address: IpAddr, identity: Option<&'a PeerIdentity>) -> Self {
        Self { address: address.to_canonical(), identity }
    }

    /// The address. One of IPv4 mapped into IPv6 is itself.
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
        Self::new(address, None)
    }
}
