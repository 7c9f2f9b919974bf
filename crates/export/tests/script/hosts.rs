//! The hosts that a resolver of the transcripts knows.

use std::net::IpAddr;

use comity_export::{Resolver, Unresolved};

/// Three hosts, a host that claims the name of another one, and a name server that is down.
pub(crate) struct Hosts;

const HOSTS: &[(&str, &str)] = &[
    ("one.example.org", "192.0.2.1"),
    ("lab1.example.org", "192.0.2.11"),
    ("lab2.example.org", "192.0.2.12"),
];

/// The address whose name server claims that it is lab1, although lab1 has another address.
const LIAR: &str = "192.0.2.66";

/// A name and an address whose name servers do not answer.
const SILENT: (&str, &str) = ("down.example.org", "192.0.2.99");

impl Resolver for Hosts {
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unresolved> {
        if name == SILENT.0 {
            return Err(Unresolved::Failed("no server answers".into()));
        }
        let found = HOSTS.iter().find(|(known, _)| *known == name);
        found.map(|(_, address)| vec![address.parse().unwrap()]).ok_or(Unresolved::Unknown)
    }

    fn name(&self, address: IpAddr) -> Result<String, Unresolved> {
        let address = address.to_string();
        match address.as_str() {
            LIAR => Ok("lab1.example.org".into()),
            silent if silent == SILENT.1 => Err(Unresolved::Failed("no server answers".into())),
            _ => HOSTS
                .iter()
                .find(|(_, known)| *known == address)
                .map(|(name, _)| (*name).to_owned())
                .ok_or(Unresolved::Unknown),
        }
    }
}
