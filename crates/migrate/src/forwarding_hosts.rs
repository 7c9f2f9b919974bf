use std::net::{IpAddr, Ipv6Addr};

use comity_proto::migration::{HOSTS_MAX, HostsReply};
use comity_xdr::Counted;

/// The hosts of NFSv3 that have locks at a server, and reached it through the server that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardingHosts {
    /// A number that differs in every run of the server that has the locks.
    pub run: u64,
    /// Their addresses; more than [`HOSTS_MAX`] are not sent.
    pub hosts: Vec<IpAddr>,
}

impl From<ForwardingHosts> for HostsReply {
    fn from(ForwardingHosts { run, hosts }: ForwardingHosts) -> Self {
        let hosts = hosts.into_iter().take(HOSTS_MAX as usize).map(mapped);
        Self { run, hosts: Counted(hosts.collect()) }
    }
}

impl From<HostsReply> for ForwardingHosts {
    fn from(HostsReply { run, hosts }: HostsReply) -> Self {
        Self { run, hosts: hosts.0.into_iter().map(canonical).collect() }
    }
}

/// Returns the bytes of an address in messages.
pub(crate) const fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Returns the address that has these bytes in messages.
pub(crate) fn canonical(address: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(address).to_canonical()
}
