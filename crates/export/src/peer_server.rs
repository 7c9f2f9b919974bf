//! `[[peer]]` of the configuration: the servers with which this one exchanges exports.

use std::net::IpAddr;

use comity_credential::PublicKey;
use serde::Deserialize;
use toml::Spanned;

use crate::config_reader::Reader;
use crate::diagnostic::Diagnostics;
use crate::limits::PEER_SERVERS_MAX;
use crate::referral::{is_plain_name, server};
use crate::{Location, Unresolved};

/// A table `[[peer]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerTable {
    name: Spanned<String>,
    address: Spanned<String>,
    key: Spanned<String>,
}

/// Another server, to which exports are moved, or from which they come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerServer {
    /// The name that `home=` and `comity migrate` use.
    pub name: Box<str>,
    /// Its name or address, as clients are told it; an IPv6 address is without brackets.
    pub host: Box<str>,
    /// The port at which this server calls it. Clients use the port of NFS.
    pub port: u16,
    /// The key that it proves by TLS.
    pub key: PublicKey,
    /// The addresses of the host.
    pub addresses: Box<[IpAddr]>,
}

/// Looks up the addresses of peers. Calls from other addresses are served, but as those of a
/// stranger: slowly.
pub(crate) fn resolve(
    peers: &mut [PeerServer],
    mut look_up: impl FnMut(&str) -> Result<Box<[IpAddr]>, Unresolved>,
    diagnostics: &mut Diagnostics,
) {
    for peer in peers {
        let given = peer.host.parse().map(|address: IpAddr| [address.to_canonical()].into());
        match given.or_else(|_| look_up(&peer.host)) {
            Ok(addresses) => peer.addresses = addresses,
            Err(what) => {
                let place = Location::file("configuration");
                diagnostics.warning(&place, format!("peer {} is not found: {what}", peer.name));
            }
        }
    }
}

/// The port of NFS (RFC 8881, section 2.9.3).
const PORT: u16 = 2049;

impl Reader<'_> {
    /// Reads all tables. Mistakes are diagnostics.
    pub(crate) fn peers(&mut self, tables: Vec<PeerTable>) -> Vec<PeerServer> {
        let mut peers: Vec<PeerServer> = Vec::new();
        for table in tables {
            let span = table.name.span();
            if peers.len() == PEER_SERVERS_MAX {
                self.error(&span, format!("more than {PEER_SERVERS_MAX} peers"));
                break;
            }
            let Some(peer) = self.peer(table) else { continue };
            match peers.iter().find(|known| known.name == peer.name || known.key == peer.key) {
                Some(known) => {
                    let what = format!("peer {} has the name or the key of another", known.name);
                    self.error(&span, what);
                }
                None => peers.push(peer),
            }
        }
        peers
    }

    fn peer(&mut self, table: PeerTable) -> Option<PeerServer> {
        let name = table.name.get_ref().as_str();
        if let Err(what) = peer_name(name) {
            self.error(&table.name.span(), what);
        }
        let address = host_and_port(table.address.get_ref());
        let address = address.map_err(|what| self.error(&table.address.span(), what));
        let key = table.key.get_ref().parse();
        let key = key.map_err(|what| self.error(&table.key.span(), format!("key: {what}")));
        let (host, port) = address.ok()?;
        let addresses = Box::default();
        Some(PeerServer { name: name.into(), host, port, key: key.ok()?, addresses })
    }
}

/// Checks the name of a peer, which stands in options and on command lines.
///
/// # Errors
/// The mistake in words.
pub(crate) fn peer_name(name: &str) -> Result<(), String> {
    if is_plain_name(name) {
        return Ok(());
    }
    Err(format!("{name:?} is no name of a peer: expected letters, digits, '.', '-' and '_'"))
}

/// Splits `HOST` or `HOST:PORT`; an IPv6 address is in brackets.
fn host_and_port(text: &str) -> Result<(Box<str>, u16), String> {
    let is_bracketed = text.starts_with('[') && text.ends_with(']');
    let (host, port) = match text.rsplit_once(':').filter(|_| !is_bracketed) {
        None => (text, PORT),
        Some((host, port)) => (host, port.parse().map_err(|_| format!("{port:?} is no port"))?),
    };
    Ok((server(host)?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_nfs_is_the_default() {
        for (text, host, port) in [
            ("b.example.org", "b.example.org", 2049),
            ("192.0.2.7:2050", "192.0.2.7", 2050),
            ("[2001:db8::7]", "2001:db8::7", 2049),
            ("[2001:db8::7]:2050", "2001:db8::7", 2050),
        ] {
            assert_eq!(host_and_port(text), Ok((host.into(), port)), "{text}");
        }
        for text in ["", "b:", "b:70000", "2001:db8::7", "b c"] {
            assert!(host_and_port(text).is_err(), "{text}");
        }
    }
}
