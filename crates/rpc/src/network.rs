use std::net::{IpAddr, Ipv6Addr};

/// Returns the network of an address, by which shares are counted: the /64 of an IPv6 address,
/// because a host with one address of it may use all of them, or the IPv4 address itself.
#[must_use]
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_of_ipv6_is_one_peer() {
        let [a, b] = ["2001:db8::1", "2001:db8::2:3"].map(|a| network_of(a.parse().unwrap()));
        assert_eq!(a, b);
        assert_ne!(a, network_of("2001:db8:0:1::1".parse().unwrap()));
        let mapped = network_of("::ffff:10.0.0.1".parse().unwrap());
        assert_eq!(mapped, "10.0.0.1".parse::<IpAddr>().unwrap());
    }
}
