//! Universal addresses (RFC 5665, 5.2.3): host and port as text, `192.0.2.1.8.1`,
//! `2001:db8::1.8.1`.

use std::net::{IpAddr, SocketAddr};

use comity_state::CallbackAddress;

/// Returns the callback address of a client of minor version 0, if it can be parsed.
pub(super) fn socket(callback: &CallbackAddress) -> Option<SocketAddr> {
    let is_tcp = matches!(&*callback.netid, b"tcp" | b"tcp6");
    let text = std::str::from_utf8(&callback.address).ok().filter(|_| is_tcp)?;
    let (rest, low) = text.rsplit_once('.')?;
    let (host, high) = rest.rsplit_once('.')?;
    let port = u16::from_be_bytes([high.parse().ok()?, low.parse().ok()?]);
    let host: IpAddr = host.parse().ok()?;
    (port != 0 && !host.is_unspecified()).then_some(SocketAddr::new(host, port))
}

/// Returns the callback address that a client gives, if the server accepts it. It accepts only
/// ports of the address from which the client calls. Otherwise a client could make the server
/// connect to any port of any host, even to hosts that the client itself cannot reach.
pub(crate) fn believed(said: CallbackAddress, from: IpAddr) -> CallbackAddress {
    let is_own = |at: SocketAddr| at.ip().to_canonical() == from.to_canonical();
    if socket(&said).is_none_or(is_own) {
        return said;
    }
    CallbackAddress { netid: Box::default(), address: Box::default(), ..said }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(netid: &str, address: &str) -> Option<String> {
        let (netid, address) = (netid.as_bytes().into(), address.as_bytes().into());
        let callback = CallbackAddress { netid, address, ..CallbackAddress::default() };
        socket(&callback).map(|found| found.to_string())
    }

    #[test]
    fn universal_addresses_are_understood() {
        assert_eq!(parsed("tcp", "192.0.2.1.8.1").as_deref(), Some("192.0.2.1:2049"));
        assert_eq!(parsed("tcp6", "2001:db8::1.8.1").as_deref(), Some("[2001:db8::1]:2049"));
    }

    #[test]
    fn a_malformed_callback_address_is_none() {
        for address in [
            "",
            "192.0.2.1",
            "192.0.2.1.8",
            "192.0.2.1.8.256",
            "host.8.1",
            "0.0.0.0.8.1",
            "192.0.2.1.0.0",
        ] {
            assert_eq!(parsed("tcp", address), None, "{address}");
        }
        assert_eq!(parsed("udp", "192.0.2.1.8.1"), None);
    }

    #[test]
    fn a_client_may_only_give_its_own_address() {
        let reached = |address: &str, from: &str| {
            let (netid, address) = (b"tcp"[..].into(), address.as_bytes().into());
            let said = CallbackAddress { netid, address, program: 7, ident: 9 };
            let believed = believed(said, from.parse().unwrap());
            assert_eq!((believed.program, believed.ident), (7, 9));
            socket(&believed).is_some()
        };
        assert!(reached("192.0.2.1.8.1", "192.0.2.1"));
        assert!(reached("192.0.2.1.8.1", "::ffff:192.0.2.1"));
        assert!(reached("::ffff:192.0.2.1.8.1", "192.0.2.1"));
        assert!(reached("2001:db8::1.8.1", "2001:db8::1"));
        for address in ["192.0.2.2.8.1", "127.0.0.1.0.22", "::1.0.22", "nonsense"] {
            assert!(!reached(address, "192.0.2.1"), "{address}");
        }
    }
}
