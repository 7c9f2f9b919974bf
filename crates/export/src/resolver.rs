use std::fmt;
use std::net::IpAddr;

use comity_vfs::AsServer;
use dns_lookup::{LookupErrorKind, getaddrinfo, getnameinfo};

/// A service that looks up the addresses of names and the names of addresses.
pub trait Resolver: Send + Sync {
    /// The addresses of a host.
    ///
    /// # Errors
    /// [`Unresolved`].
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unresolved>;

    /// Returns the name of an address. It proves nothing yet, because the owner of the address
    /// chooses it.
    ///
    /// # Errors
    /// [`Unresolved`].
    fn name(&self, address: IpAddr) -> Result<String, Unresolved>;
}

/// Why a look-up failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unresolved {
    /// The name server has no such name.
    Unknown,
    /// No name server could be reached, or none answered; the reason in words.
    Failed(String),
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no such name"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

/// The system's resolver, with hosts file, DNS, and the other services of `nsswitch.conf`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let _server = as_server()?;
        let found = getaddrinfo(Some(name), None, None).map_err(unresolved)?;
        let mut found: Vec<IpAddr> =
            found.flatten().map(|info| info.sockaddr.ip().to_canonical()).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn name(&self, address: IpAddr) -> Result<String, Unresolved> {
        const NAME_REQUIRED: i32 = 8;
        let _server = as_server()?;
        let (name, _) = getnameinfo(&(address, 0).into(), NAME_REQUIRED).map_err(unresolved)?;
        Ok(name)
    }
}

/// Takes the server's identity, because the resolver reads files of the system.
fn as_server() -> Result<AsServer, Unresolved> {
    AsServer::here().map_err(|status| Unresolved::Failed(status.to_string()))
}

fn unresolved(error: dns_lookup::LookupError) -> Unresolved {
    match error.kind() {
        LookupErrorKind::NoName | LookupErrorKind::NoData => Unresolved::Unknown,
        _ => Unresolved::Failed(std::io::Error::from(error).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_no_lookup() {
        let found = SystemResolver.addresses("192.0.2.7");
        assert_eq!(found, Ok(vec!["192.0.2.7".parse().unwrap()]));
        assert!(SystemResolver.addresses("no such host").is_err());
    }
}
