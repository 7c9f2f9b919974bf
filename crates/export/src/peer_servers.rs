//! The servers that may hand exports over to this one: those of the configuration or, in a cluster,
//! the other heads.

use std::net::IpAddr;
use std::sync::Arc;

use crate::{Exports, PeerServer, RpcPeer};

impl Exports {
    /// Sets the other heads of the cluster in which this server is a head. From then on only they
    /// may hand exports over, and no `[[peer]]` of the configuration.
    pub fn note_heads(&self, heads: Vec<PeerServer>) {
        self.heads().store(Some(Arc::new(heads)));
    }

    /// Returns the server that a visitor has proved to be by its key, of those that may hand
    /// exports over.
    #[must_use]
    pub fn peer_server(&self, visitor: &RpcPeer) -> Option<PeerServer> {
        let key = visitor.key()?;
        match &*self.heads().load() {
            Some(heads) => heads.iter().find(|head| head.key == key).cloned(),
            None => self.current().peer_of(visitor).cloned(),
        }
    }

    /// Returns whether a server that may hand exports over has this address.
    #[must_use]
    pub fn is_address_of_peer_server(&self, address: IpAddr) -> bool {
        match &*self.heads().load() {
            Some(heads) => heads.iter().any(|it| it.addresses.contains(&address.to_canonical())),
            None => self.current().is_address_of_peer(address),
        }
    }

    /// Returns whether there are servers that may hand exports over.
    pub(crate) fn has_peer_servers(&self) -> bool {
        self.heads().load().is_some() || !self.current().peers().is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{HandleKey, Plan};

    #[test]
    fn in_a_cluster_only_heads_are_peer_servers() {
        let peer = |name: &str, address: &str| PeerServer {
            name: name.into(),
            host: address.into(),
            port: 2049,
            key: "ed25519:AAxZJxEvu5tMdEDLymqeQHL+vaH27JgVl8AWX7czThk=".parse().unwrap(),
            addresses: [address.parse().unwrap()].into(),
        };
        let exports = Exports::new(
            Plan::new(HandleKey::new([0; 16]), Vec::new()).peering(vec![peer("p", "192.0.2.1")]),
        );
        let is_known = |address: &str| exports.is_address_of_peer_server(address.parse().unwrap());
        assert!(is_known("192.0.2.1") && !is_known("192.0.2.2"));
        exports.note_heads(vec![peer("b", "192.0.2.2")]);
        assert!(!is_known("192.0.2.1") && is_known("192.0.2.2"));
        exports.note_heads(Vec::new());
        assert!(exports.has_peer_servers(), "the heads are the only ones, though none is known");
    }
}
