//! The place at which other heads reach a head, and the key by which they know it.
//!
//! Each head puts the TLS key of its server in etcd. Heads trust these keys: whoever can write to
//! etcd decides anyway which server serves an export.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::Result;
use comity_export::{Exports, PeerServer};
use comity_keys::PublicKey;
use comity_store::etcd::{KeyValue, Op};

use super::head::Head;
use super::keys::{self, HeadRun};
use crate::tls::Tls;

/// The place and the key of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeadEndpoint {
    pub(super) head: HeadRun,
    host: String,
    port: u16,
    key: PublicKey,
}

impl HeadEndpoint {
    /// Returns that of this head, which listens at these addresses. A head that listens at all
    /// addresses of its host is reached by its name. `None` if it has no TLS key of its own that
    /// others could know it by.
    pub(super) fn of(head: &HeadRun, listening: &[SocketAddr], tls: Option<&Tls>) -> Option<Self> {
        let key = *tls?.shown().public().principal()?;
        let first = listening.first()?;
        let host = match listening.iter().any(|it| it.ip().is_unspecified()) {
            true => head.name.clone(),
            false => first.ip().to_string(),
        };
        Some(Self { head: head.clone(), host, port: first.port(), key })
    }

    /// Writes it as a value.
    fn value(&self) -> Vec<u8> {
        let Self { head: HeadRun { name, run }, host, port, key } = self;
        format!("{name} {run} {host} {port} {key}").into_bytes()
    }

    /// Reads the value of a key under [`keys::ENDPOINTS`]; `None` if it is malformed.
    pub(super) fn read(entry: &KeyValue) -> Option<Self> {
        let text = std::str::from_utf8(&entry.value).ok()?;
        let [name, run, host, port, key] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let head = HeadRun { name: name.to_owned(), run: run.to_owned() };
        let (port, key) = (port.parse().ok()?, key.parse().ok()?);
        Some(Self { head, host: host.to_owned(), port, key })
    }

    /// Returns the server that is reached there.
    pub(super) fn server(&self) -> PeerServer {
        let address = self.host.parse().map(|it: IpAddr| [it.to_canonical()].into());
        PeerServer {
            name: self.head.name.as_str().into(),
            host: self.host.as_str().into(),
            port: self.port,
            key: self.key,
            addresses: address.unwrap_or_default(),
        }
    }
}

/// The endpoints that this head knows and has told.
#[derive(Default)]
pub(super) struct Endpoints {
    known: Option<Vec<HeadEndpoint>>,
    /// The number of changes of the endpoints. The addresses for an earlier one are of no use.
    changes: Arc<AtomicU64>,
}

impl Endpoints {
    /// Tells other heads the endpoint of this one, if etcd does not have it, and lets the others
    /// hand exports over to this head.
    pub(super) fn follow(
        &mut self,
        (head, exports): (&Head, &Arc<Exports>),
        own: Option<HeadEndpoint>,
        seen: &[HeadEndpoint],
    ) -> Result<()> {
        let key = keys::endpoint(&head.run.name);
        let (told, others): (Vec<_>, Vec<_>) =
            seen.iter().cloned().partition(|it| it.head == head.run);
        if let Some(own) = own.filter(|own| told.first() != Some(own)) {
            let put = Op::Put { key, value: own.value(), lease: head.lease.id };
            head.change_cluster_if(Vec::new(), &[put])?;
        }
        if self.known.as_ref() != Some(&others) {
            let servers: Vec<_> = others.iter().map(HeadEndpoint::server).collect();
            let change = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
            exports.note_heads(servers.clone());
            let changes = Arc::clone(&self.changes);
            let is_latest = move || changes.load(Ordering::Acquire) == change;
            look_up(exports, servers, is_latest);
            self.known = Some(others);
        }
        Ok(())
    }
}

/// Looks up the addresses of heads that have names. Until they are known, calls of these heads are
/// served slowly, as those of strangers are.
fn look_up(
    exports: &Arc<Exports>,
    mut servers: Vec<PeerServer>,
    is_latest: impl FnOnce() -> bool + Send + 'static,
) {
    if servers.iter().all(|server| !server.addresses.is_empty()) {
        return;
    }
    let exports = Arc::clone(exports);
    let work = move || {
        for server in servers.iter_mut().filter(|server| server.addresses.is_empty()) {
            let found = (&*server.host, server.port).to_socket_addrs().into_iter().flatten();
            server.addresses = found.map(|it| it.ip().to_canonical()).collect();
        }
        if is_latest() {
            exports.note_heads(servers);
        }
    };
    if let Err(error) = thread::Builder::new().name("head addresses".into()).spawn(work) {
        tracing::warn!("the addresses of other heads are not looked up: {error}");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_endpoint_is_read_as_it_is_written() {
        let key = "ed25519:AAxZJxEvu5tMdEDLymqeQHL+vaH27JgVl8AWX7czThk=".parse().unwrap();
        let head = HeadRun { name: "a".into(), run: "00ff".into() };
        let endpoint = HeadEndpoint { head, host: "192.0.2.1".into(), port: 2049, key };
        let entry = |value| KeyValue { key: keys::endpoint("a"), value, created: 1, changed: 1 };
        assert_eq!(HeadEndpoint::read(&entry(endpoint.value())), Some(endpoint.clone()));
        assert_eq!(endpoint.server().addresses, ["192.0.2.1".parse().unwrap()].into());
        for bad in [&b"a 00ff 192.0.2.1 2049"[..], b"a 00ff h 70000 ed25519:x", b"\xff"] {
            assert_eq!(HeadEndpoint::read(&entry(bad.to_vec())), None);
        }
    }
}
