//! Publishes the server's ports: by a portmapper that runs on this machine already
//! ([`Registration`]) or by the embedded one ([`Portmapper`]). Neither is needed if clients are
//! given the port.

mod embedded;
mod program;
mod register;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub use embedded::{PortmapError, Portmapper};
pub use register::{RegisterError, Registration};

/// A version of a program, and the address where it listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertised {
    /// Program number.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The protocol: [`comity_proto::portmap::TCP`] or UDP.
    pub protocol: u32,
    /// The address and port.
    pub address: SocketAddr,
}

/// Returns the addresses at which clients of each IP version find a listener: the unspecified
/// address of IPv6 takes IPv4 too.
pub fn both_versions(address: SocketAddr) -> impl Iterator<Item = SocketAddr> {
    let everywhere = address.ip().is_unspecified() && address.is_ipv6();
    let four = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
    [address].into_iter().chain(everywhere.then_some(four))
}
