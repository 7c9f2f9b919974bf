use std::net::IpAddr;

use comity_credential::PeerIdentity;

/// The properties of a peer that entries of exports match: its address, and the identity that it
/// has proved.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    address: IpAddr,
    identity: Option<&'a PeerIdentity>,
}

impl<'a> Candidate<'a> {
    /// Makes the candidate of a peer at this address that has proved an identity.
    pub(crate) fn new(address: IpAddr, identity: Option<&'a PeerIdentity>) -> Self {
        Self { address: address.to_canonical(), identity }
    }

    /// Returns the address. An IPv4 address mapped into IPv6 is returned as IPv4.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// The identity.
    pub(crate) const fn identity(&self) -> Option<&'a PeerIdentity> {
        self.identity
    }
}

/// Makes the candidate of a peer that has proved nothing.
impl From<IpAddr> for Candidate<'static> {
    fn from(address: IpAddr) -> Self {
        Self::new(address, None)
    }
}
