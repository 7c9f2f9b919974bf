use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use comity_rpc::network_of;

/// Where a call comes from, as far as it matters to whom a client's state belongs: an address of
/// IPv4, or a network of 64 bits of IPv6, in which a host chooses its addresses itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin([u8; 16]);

impl Origin {
    /// The origin that an address belongs to.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self(match network_of(address) {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(network) => network.octets(),
        })
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
    fn a_network_of_ipv6_is_one_origin() {
        let of = |address: &str| Origin::of(address.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(Origin::from_bytes(*of("10.0.0.1").bytes()), of("10.0.0.1"));
    }
}
