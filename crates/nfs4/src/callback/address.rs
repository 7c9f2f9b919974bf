//! Universal addresses (RFC 5665, 5.2.3): host and port as text, `192.0.2.1.8.1`,
//! `2001:db8::1.8.1`.

use std::net::{IpAddr, SocketAddr};

use comity_state::CallbackAddress;

/// Where a client of minor version 0 takes callbacks, if that can be understood.
pub(super) fn socket(callback: &CallbackAddress) -> Option<SocketAddr> {
    let is_tcp = matches!(&*callback.netid, b"tcp" | b"tcp6");
    let text = std::str::from_utf8(&callback.address).ok().filter(|_| is_tcp)?;
    let (rest, low) = text.rsplit_once('.')?;
    let (host, high) = rest.rsplit_once('.')?;
    let port = u16::from_be_bytes([high.parse().ok()?, low.parse().ok()?]);
    let host: IpAddr = host.parse().ok()?;
    (port != 0 && !host.is_unspecified()).then_some(SocketAddr::new(host, port))
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
    fn what_is_none_leads_nowhere() {
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
}
