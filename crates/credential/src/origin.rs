use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use comity_rpc::network_of;

/// The origin of a call, which decides with the principal whose a client's state is: an address.
/// Machines of one network are told apart, in IPv6 as in IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin([u8; 16]);

impl Origin {
    /// The origin that is this address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        })
    }

    /// The origins that have one share of what is bounded: a network of 64 bits of IPv6, in which a
    /// host chooses its addresses itself, or an address of IPv4.
    #[must_use]
    pub fn network(self) -> Self {
        Self::of(network_of(Ipv6Addr::from_octets(self.0).into()))
    }

    /// The origin that was stored as these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes by which it is stored.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from_octets(self.0).to_canonical().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_has_one_share_and_each_address_is_an_origin() {
        let of = |address: &str| Origin::of(address.parse().unwrap());
        assert_ne!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_eq!(of("2001:db8::1").network(), of("2001:db8::2:3").network());
        assert_ne!(of("2001:db8::1").network(), of("2001:db8:0:1::1").network());
        assert_eq!(of("10.0.0.1").network(), of("10.0.0.1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(Origin::from_bytes(*of("10.0.0.1").bytes()), of("10.0.0.1"));
    }
}
