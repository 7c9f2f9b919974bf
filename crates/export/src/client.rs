use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use comity_vfs::Result;
use ipnet::IpNet;

use crate::limits::NAME_BYTES_MAX;
use crate::netgroup::Members;
use crate::wildcard::{Wildcard, is_host_letter};
use crate::{Candidate, Proof};

/// The clients to which an entry offers an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// One address.
    Address(IpAddr),
    /// A host by its name, with its addresses when the plan was made.
    Host(Box<str>, Box<[IpAddr]>),
    /// A network.
    Network(IpNet),
    /// A netgroup (`@name`), with its hosts when the plan was made.
    Netgroup(Box<str>, Arc<Members>),
    /// Hosts whose name matches a pattern.
    Wildcard(Wildcard),
    /// A peer that has proved an identity in a TLS handshake, at any address.
    Proved(Proof),
    /// Everybody (`*`).
    Everybody,
}

/// Returns the verified names of a peer, which are looked up only when they are needed.
pub(crate) type NamesOf<'a> = dyn Fn() -> Result<Arc<[Box<str>]>> + 'a;

impl Client {
    /// Parses a client of exports(5): address, `network/prefix`, `network/netmask`, host name,
    /// wildcard, `@netgroup` or `*`; or `key=KEY`, `cert=NAME`, `ca=FILE` or `cert=NAME@FILE`.
    /// Hosts and netgroups have no members yet, certificates no authorities.
    ///
    /// # Errors
    /// The mistake in the text, in words.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        if text == "*" {
            return Ok(Self::Everybody);
        }
        if let Some(group) = text.strip_prefix('@') {
            return netgroup(group);
        }
        if let Some(proof) = Proof::parse(text) {
            return proof.map(Self::Proved);
        }
        if text.contains('/') && !text.starts_with("gss/") {
            return network(text);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(format!("a host name over {NAME_BYTES_MAX} bytes"));
        }
        if Wildcard::is_meant_by(text) {
            let found = Wildcard::parse(text).map_err(|what| format!("client {text:?}: {what}"));
            return found.map(Self::Wildcard);
        }
        host(text)
    }

    /// Returns whether a peer matches. Its names are looked up only if they matter.
    pub(crate) fn matches(&self, peer: Candidate<'_>, names: &NamesOf<'_>) -> Result<bool> {
        Ok(match self {
            Self::Address(address) => *address == peer.address(),
            Self::Host(_, addresses) => addresses.contains(&peer.address()),
            Self::Network(network) => network.contains(&peer.address()),
            Self::Proved(proof) => peer.identity().is_some_and(|it| proof.is_given_by(it)),
            Self::Netgroup(_, members) => members.are_everybody() || members.contain(&names()?),
            // The first name is the address as text, which netgroups may contain. Patterns match
            // names only.
            Self::Wildcard(pattern) => names()?.iter().skip(1).any(|name| pattern.matches(name)),
            Self::Everybody => true,
        })
    }

    /// Returns the rank of an entry; the entry with the lowest rank decides among those that match
    /// a peer. The order is: proved identities, addresses and hosts, networks by length of prefix,
    /// netgroups, wildcards by the number of literal characters, everybody.
    pub(crate) fn rank(&self) -> (u8, usize) {
        match self {
            Self::Proved(proof) => proof.rank(),
            Self::Address(_) | Self::Host(..) => (3, 0),
            Self::Network(network) => {
                (4, usize::from(network.max_prefix_len() - network.prefix_len()))
            }
            Self::Netgroup(..) => (5, 0),
            Self::Wildcard(pattern) => (6, NAME_BYTES_MAX.saturating_sub(pattern.literals())),
            Self::Everybody => (7, 0),
        }
    }

    /// Returns the file of certificate authorities that it names.
    pub(crate) fn authority_file(&self) -> Option<&Path> {
        match self {
            Self::Proved(Proof::Certificate(certificate)) => certificate.file(),
            _ => None,
        }
    }

    /// Returns whether its peers are identified by what they prove, not by address.
    pub(crate) const fn is_proved(&self) -> bool {
        matches!(self, Self::Proved(_))
    }

    /// Returns whether its peers are identified by name only.
    pub(crate) const fn needs_names(&self) -> bool {
        matches!(self, Self::Netgroup(..) | Self::Wildcard(_))
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Host(name, _) => f.write_str(name),
            Self::Network(network) => network.fmt(f),
            Self::Netgroup(name, _) => write!(f, "@{name}"),
            Self::Wildcard(pattern) => pattern.fmt(f),
            Self::Proved(proof) => proof.fmt(f),
            Self::Everybody => f.write_str("*"),
        }
    }
}

fn host(text: &str) -> std::result::Result<Client, String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.starts_with("gss/") {
        return Err(format!("client {text:?}: Kerberos is not spoken; write a host or network"));
    }
    let labels = name.split('.').all(|label| (1..=63).contains(&label.len()));
    let numeric = name.bytes().all(|letter| letter.is_ascii_digit() || letter == b'.');
    if !labels || numeric || !name.bytes().all(is_host_letter) {
        return Err(format!(
            "client {text:?} is no address, network, host name, wildcard or @netgroup"
        ));
    }
    Ok(Client::Host(name.to_ascii_lowercase().into(), Box::default()))
}

fn netgroup(name: &str) -> std::result::Result<Client, String> {
    let fits = |letter: u8| is_host_letter(letter) || matches!(letter, b'+' | b':' | b'@');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(fits) {
        return Err(format!("{name:?} is no name of a netgroup"));
    }
    Ok(Client::Netgroup(name.into(), Arc::default()))
}

/// A network as long as an address becomes that address.
fn network(text: &str) -> std::result::Result<Client, String> {
    let wrong = || format!("client {text:?}: expected ADDRESS/PREFIX or ADDRESS/NETMASK");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let prefix = match length.parse::<u8>() {
        Ok(prefix) if length.bytes().all(|letter| letter.is_ascii_digit()) => prefix,
        _ => netmask(address, length).ok_or_else(wrong)?,
    };
    let network = IpNet::new(address, prefix).map_err(|_| wrong())?.trunc();
    if network.prefix_len() == network.max_prefix_len() {
        return Ok(Client::Address(address.to_canonical()));
    }
    Ok(Client::Network(network))
}

fn netmask(address: IpAddr, mask: &str) -> Option<u8> {
    match address {
        IpAddr::V4(_) => {
            let mask: Ipv4Addr = mask.parse().ok()?;
            ipnet::ip_mask_to_prefix(mask.into()).ok()
        }
        IpAddr::V6(_) => {
            let mask: Ipv6Addr = mask.parse().ok()?;
            ipnet::ip_mask_to_prefix(mask.into()).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_vfs::Status;

    fn matches(client: &str, peer: &str) -> bool {
        let unknown = || Err(Status::Delay);
        Client::parse(client)
            .unwrap()
            .matches(peer.parse::<IpAddr>().unwrap().into(), &unknown)
            .unwrap()
    }

    #[test]
    fn networks_come_with_prefix_or_mask() {
        for client in ["10.1.0.0/16", "10.1.2.3/16", "10.1.0.0/255.255.0.0"] {
            assert!(matches(client, "10.1.9.9") && !matches(client, "10.2.0.1"), "{client}");
            assert_eq!(Client::parse(client).unwrap().to_string(), "10.1.0.0/16");
        }
        for client in ["fd00::/8", "fd00::/ff00::"] {
            assert!(matches(client, "fd12::1") && !matches(client, "fe80::1"), "{client}");
        }
        assert_eq!(Client::parse("::ffff:10.0.0.1"), Client::parse("10.0.0.1/32"));
        assert!(matches("0.0.0.0/0", "1.2.3.4") && !matches("0.0.0.0/0", "::1"));
    }

    #[test]
    fn text_that_is_no_client_is_refused() {
        for client in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/255.0.255.0",
            "10.0.0/8",
            "fd00::/129",
            "/8",
            "1.2.3",
            "300.1.1.1",
            "@",
            "@a b",
            "gss/krb5",
            "a..b",
            "h\u{f6}st",
            "10.0.0.0/+8",
            "host/8",
            "[a",
            "1.2.3.4/::",
        ] {
            assert!(Client::parse(client).is_err(), "{client}");
        }
        assert!(Client::parse(&"a.".repeat(200)).is_err());
    }

    #[test]
    fn the_most_specific_ranks_first() {
        let ranked = [
            "10.0.0.1",
            "10.0.0.0/24",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "@lab",
            "*.lab.example.org",
            "*.example.org",
            "*",
        ];
        let ranks: Vec<_> = ranked.map(|text| Client::parse(text).unwrap().rank()).into();
        assert!(ranks.is_sorted_by(|one, next| one < next), "{ranks:?}");
    }

    #[test]
    fn display_is_what_was_parsed() {
        for text in ["*", "@lab", "host.example.org", "*.x[a-b]", "10.0.0.0/8", "::1", "fd00::/8"] {
            assert_eq!(Client::parse(text).unwrap().to_string(), text);
        }
    }
}
