//! The portmapper, version 2 (RFC 1833, 3), and rpcbind, versions 3 and 4 (RFC 1833, 2).

use std::net::{IpAddr, SocketAddr};

use comity_xdr::{Decode, Decoder, Encode, Encoder, Malformed, Opaque};

/// The program number of both.
pub const PROGRAM: u32 = 100_000;
/// The port of portmappers.
pub const PORT: u16 = 111;
/// The version with port numbers.
pub const PORTMAP_VERSION: u32 = 2;
/// A version with universal addresses.
pub const RPCBIND_VERSION_3: u32 = 3;
/// A version with universal addresses.
pub const RPCBIND_VERSION_4: u32 = 4;

/// The protocol number of TCP in [`Mapping`].
pub const TCP: u32 = 6;
/// The protocol number of UDP in [`Mapping`].
pub const UDP: u32 = 17;

/// Longest netid, universal address or owner in bytes: the longest address is one of IPv6 with a
/// zone, and user names are shorter.
pub const TEXT_BYTES_MAX: u32 = 128;

/// Most entries of a list that are decoded: no machine runs more RPC programs.
pub const LIST_ENTRIES_MAX: usize = 1024;

/// Procedure numbers; those up to DUMP are common to all versions.
pub mod procedure {
    #![allow(missing_docs)]
    pub const NULL: u32 = 0;
    pub const SET: u32 = 1;
    pub const UNSET: u32 = 2;
    /// GETPORT of version 2.
    pub const GETPORT: u32 = 3;
    /// GETADDR of versions 3 and 4.
    pub const GETADDR: u32 = 3;
    pub const DUMP: u32 = 4;
    /// Only in version 4.
    pub const GETVERSADDR: u32 = 9;
}

/// A program of version 2 with its protocol and port (`mapping`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Mapping {
    /// Program number.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// [`TCP`] or [`UDP`].
    pub protocol: u32,
    /// The port; 0 in requests.
    pub port: u32,
}

/// A program of versions 3 and 4 with its universal address (`rpcb`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Rpcb<'a> {
    /// Program number.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The transport: `tcp`, `tcp6`, `udp`, `udp6`.
    pub netid: Opaque<'a, TEXT_BYTES_MAX>,
    /// The universal address; empty in requests.
    pub address: Opaque<'a, TEXT_BYTES_MAX>,
    /// The owner of the mapping.
    pub owner: Opaque<'a, TEXT_BYTES_MAX>,
}

/// The result of DUMP: a linked list, in which each entry follows the boolean true (`pmaplist`,
/// `rpcblist_ptr`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<T: Encode> Encode for List<T> {
    fn encode(&self, encoder: &mut Encoder) {
        for entry in &self.0 {
            encoder.value(&true);
            encoder.value(entry);
        }
        encoder.value(&false);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for List<T> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let mut entries = Vec::new();
        while decoder.value::<bool>()? {
            if entries.len() == LIST_ENTRIES_MAX {
                let limit = LIST_ENTRIES_MAX as u32;
                return Err(Malformed::TooLong { length: limit + 1, limit });
            }
            entries.push(decoder.value()?);
        }
        Ok(Self(entries))
    }
}

/// The netid of [`TCP`] or [`UDP`] over the family of an address (RFC 5665, 5).
#[must_use]
pub const fn netid(protocol: u32, address: IpAddr) -> &'static str {
    match (protocol, address.is_ipv4()) {
        (UDP, true) => "udp",
        (UDP, false) => "udp6",
        (_, true) => "tcp",
        (_, false) => "tcp6",
    }
}

/// A universal address: the host, then the two bytes of the port in decimal (RFC 5665, 5.2.3).
#[must_use]
pub fn universal_address(address: SocketAddr) -> String {
    let [high, low] = address.port().to_be_bytes();
    format!("{}.{high}.{low}", address.ip())
}

/// The port in a universal address; `None` if the text is not one.
#[must_use]
pub fn universal_port(address: &str) -> Option<u16> {
    let (rest, low) = address.rsplit_once('.')?;
    let (_, high) = rest.rsplit_once('.')?;
    Some(u16::from_be_bytes([high.parse().ok()?, low.parse().ok()?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_and_read_entry_by_entry() {
        let mapping = Mapping { program: 100_003, version: 3, protocol: TCP, port: 2049 };
        let list = List(vec![mapping; 2]);
        let mut encoder = Encoder::new();
        encoder.value(&list);
        assert_eq!(encoder.bytes().len(), 2 * 20 + 4);
        assert_eq!(Decoder::whole(encoder.bytes()), Ok(list));
    }

    #[test]
    fn a_list_that_is_too_long_is_refused() {
        let mut encoder = Encoder::new();
        for _ in 0..=LIST_ENTRIES_MAX {
            encoder.value(&true);
            encoder.value(&0_u32);
        }
        let found = Decoder::whole::<List<u32>>(encoder.bytes());
        assert!(matches!(found, Err(Malformed::TooLong { .. })), "{found:?}");
    }

    #[test]
    fn a_port_is_the_last_two_numbers() {
        let address: SocketAddr = "[::]:2049".parse().unwrap();
        assert_eq!(universal_address(address), "::.8.1");
        assert_eq!(universal_port("::.8.1"), Some(2049));
        assert_eq!(universal_port("10.0.0.1.8.256"), None);
        assert_eq!(universal_port("8.1"), None);
    }
}
