//! Messages to neighbours that an address is at this host now: an ARP announcement (RFC 5227, 3)
//! for IPv4, an unsolicited neighbour advertisement (RFC 4861, 7.2.6) for IPv6. Without one,
//! neighbours send to the earlier host for up to minutes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, bind, send, socket};

/// A link-layer address of Ethernet.
type EthernetAddress = [u8; 6];

const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// The Ethernet address of the group of all IPv6 hosts of the link (RFC 2464, 7).
const ALL_NODES_ETHERNET: EthernetAddress = [0x33, 0x33, 0, 0, 0, 1];

/// The group of all hosts of the link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

const ICMPV6: u8 = 58;

/// Tells the neighbours on a device that this host has an address. A device without Ethernet
/// addresses has no neighbours that could be wrong.
///
/// # Errors
/// There is no such device, or it sends nothing.
pub(crate) fn announce(device: &str, address: IpAddr) -> Result<()> {
    let Some(link) = link_of(device)? else { return Ok(()) };
    let Some(own) = link.addr() else { return Ok(()) };
    let frame = match address {
        IpAddr::V4(address) => arp_announcement(own, address),
        IpAddr::V6(address) => neighbour_advertisement(own, address),
    };
    let failed = || format!("cannot tell the neighbours on {device} that {address} is here");
    let flags = SockFlag::SOCK_CLOEXEC;
    let raw = socket(AddressFamily::Packet, SockType::Raw, flags, None).with_context(failed)?;
    bind(raw.as_raw_fd(), &link).with_context(failed)?;
    send(raw.as_raw_fd(), &frame, MsgFlags::empty()).with_context(failed).map(drop)
}

/// Returns the device as the kernel knows it; its own addresses are among those of the machine.
fn link_of(device: &str) -> Result<Option<LinkAddr>> {
    let all = getifaddrs().context("cannot read the addresses of this machine")?;
    let mut links = all.filter(|it| it.interface_name == device);
    Ok(links.find_map(|it| it.address?.as_link_addr().copied()))
}

fn ethernet(to: EthernetAddress, from: EthernetAddress, ethertype: [u8; 2]) -> Vec<u8> {
    [&to[..], &from, &ethertype].concat()
}

/// A request for the address itself, by broadcast.
fn arp_announcement(own: EthernetAddress, address: Ipv4Addr) -> Vec<u8> {
    // Ethernet, IPv4, the lengths of their addresses, and the operation "request" (RFC 826).
    const HEAD: [u8; 8] = [0, 1, 0x08, 0, 6, 4, 0, 1];
    let mut frame = ethernet([0xff; 6], own, ETHERTYPE_ARP);
    let (ip, nobody) = (address.octets(), [0; 6]);
    frame.extend([&HEAD[..], &own, &ip, &nobody, &ip].concat());
    frame
}

/// An advertisement that overrides what neighbours know, to all hosts of the link.
fn neighbour_advertisement(own: EthernetAddress, address: Ipv6Addr) -> Vec<u8> {
    // Type 136, and the flag "override". The option has the link-layer address of the sender.
    const HEAD: [u8; 8] = [136, 0, 0, 0, 0x20, 0, 0, 0];
    const OPTION: [u8; 2] = [2, 1];
    let mut message = [&HEAD[..], &address.octets(), &OPTION, &own].concat();
    let length = message.len() as u16;
    let sum = checksum(&pseudo_header(address, length), &message).to_be_bytes();
    message.splice(2..4, sum);
    let mut frame = ethernet(ALL_NODES_ETHERNET, own, ETHERTYPE_IPV6);
    // A hop limit of 255 proves that no router has forwarded it (RFC 4861, 7.1.2).
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([ICMPV6, 255]);
    frame.extend([address.octets(), ALL_NODES.octets()].concat());
    frame.extend(message);
    frame
}

/// The header that is part of the checksum (RFC 8200, 8.1).
fn pseudo_header(from: Ipv6Addr, length: u16) -> Vec<u8> {
    let end = [0, 0, 0, ICMPV6];
    let length = u32::from(length).to_be_bytes();
    [&from.octets()[..], &ALL_NODES.octets(), &length, &end].concat()
}

/// The checksum of the Internet (RFC 1071) of parts of even lengths.
fn checksum(header: &[u8], message: &[u8]) -> u16 {
    let words = header.chunks(2).chain(message.chunks(2));
    let value = |word: &[u8]| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    let mut sum: u32 = words.map(value).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: EthernetAddress = [2, 0, 0, 0, 0, 7];

    #[test]
    fn an_arp_announcement_asks_for_the_address_that_sends_it() {
        let frame = arp_announcement(OWN, Ipv4Addr::new(192, 0, 2, 7));
        assert_eq!(frame[..6], [0xff; 6], "it is a broadcast");
        assert_eq!(frame[6..14], [2, 0, 0, 0, 0, 7, 8, 6]);
        assert_eq!(frame[20..22], [0, 1], "it is a request");
        assert_eq!(frame[22..32], [2, 0, 0, 0, 0, 7, 192, 0, 2, 7]);
        assert_eq!(frame[32..], [0, 0, 0, 0, 0, 0, 192, 0, 2, 7]);
    }

    #[test]
    fn a_neighbour_advertisement_has_a_checksum_that_hosts_accept() {
        let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);
        let frame = neighbour_advertisement(OWN, address);
        assert_eq!(frame.len(), 14 + 40 + 32);
        assert_eq!((frame[20], frame[21]), (ICMPV6, 255));
        let (message, target) = (&frame[54..], &frame[62..78]);
        assert_eq!(target, address.octets());
        // The sum of all words with the checksum among them is all ones (RFC 1071).
        assert_eq!(checksum(&pseudo_header(address, 32), message), 0);
        assert_ne!(message[2..4], [0, 0]);
    }
}
