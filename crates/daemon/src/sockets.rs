//! Opening the listening sockets of a server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Result, ensure};
use comity_server::ListenError;

use crate::options::{Listen, Options};

/// The sockets of the pages. They are opened before the server serves, so that a port in use does
/// not stop a server that clients already use.
pub(crate) struct PageListeners {
    pub(crate) metrics: Option<TcpListener>,
    pub(crate) web: Option<TcpListener>,
}

impl PageListeners {
    /// Listens for the configured pages.
    ///
    /// # Errors
    /// An address cannot be listened on, or the web page would be reachable from other machines.
    pub(crate) fn open(options: &Options) -> Result<Self> {
        options.web.map_or(Ok(()), only_this_machine)?;
        let open = |address: Option<SocketAddr>, remedy| {
            address.map(|address| comity_server::listen(address, remedy)).transpose()
        };
        let metrics = open(options.metrics, "choose another with --metrics")?;
        Ok(Self { metrics, web: open(options.web, "choose another with --web")? })
    }
}

fn only_this_machine(address: SocketAddr) -> Result<()> {
    ensure!(
        address.ip().is_loopback(),
        "--web {address}: the page is not encrypted, so it is for this machine alone; use \
         127.0.0.1, and `ssh -L {port}:127.0.0.1:{port}` from elsewhere",
        port = address.port()
    );
    Ok(())
}

/// Listens on all addresses at the same port, or takes the sockets of a service manager.
///
/// # Errors
/// The first address that cannot be listened on, and what to do. Default addresses of an IP version
/// that this machine does not have are skipped.
pub(crate) fn open(wanted: &Listen, inherited: Vec<TcpListener>) -> Result<Vec<TcpListener>> {
    if !inherited.is_empty() {
        return Ok(inherited);
    }
    let mut port = wanted.port;
    let mut listeners: Vec<TcpListener> = Vec::new();
    for &address in &wanted.addresses {
        let listener = match listen(SocketAddr::new(address, port)) {
            Err(error) if !wanted.is_explicit && is_missing(&error) => match instead_of(address) {
                Some(address) => listen(SocketAddr::new(address, port))?,
                None => continue,
            },
            opened => opened?,
        };
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    ensure!(!listeners.is_empty(), "there is no address to listen at; name one with --listen");
    Ok(listeners)
}

fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    comity_server::listen(address, "choose another with --port")
}

/// Returns whether the machine lacks this IPv6 address, or IPv6 altogether.
fn is_missing(error: &ListenError) -> bool {
    const NO_SUCH_VERSION: i32 = libc::EAFNOSUPPORT;
    error.address.is_ipv6()
        && (error.source.kind() == io::ErrorKind::AddrNotAvailable
            || error.source.raw_os_error() == Some(NO_SUCH_VERSION))
}

/// The address to use if IPv6 is missing: all addresses of IPv4 for all of IPv6, nothing for its
/// loopback.
fn instead_of(address: IpAddr) -> Option<IpAddr> {
    address.is_unspecified().then_some(Ipv4Addr::UNSPECIFIED.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(port: u16, is_explicit: bool) -> Listen {
        let addresses = vec![Ipv4Addr::LOCALHOST.into(), Ipv4Addr::new(127, 0, 0, 2).into()];
        Listen { addresses, is_explicit, port }
    }

    #[test]
    fn a_free_port_is_the_same_at_all_addresses() {
        let listeners = open(&local(0, true), Vec::new()).unwrap();
        let ports: Vec<u16> = listeners.iter().map(|l| l.local_addr().unwrap().port()).collect();
        assert_eq!(ports[0], ports[1]);
        let error = open(&local(ports[0], false), Vec::new()).unwrap_err().to_string();
        assert!(error.contains("in use"), "{error}");
    }

    #[test]
    fn only_default_addresses_may_be_missing() {
        let absent = "2001:db8::1".parse().unwrap();
        let wanted = |is_explicit| Listen { addresses: vec![absent], is_explicit, port: 0 };
        let refused = |is_explicit| open(&wanted(is_explicit), Vec::new()).unwrap_err().to_string();
        assert!(refused(true).contains("2001:db8::1"));
        assert!(refused(false).contains("there is no address to listen at"));
    }
}
