use std::net::SocketAddr;
use std::sync::Arc;

use comity_tls::Acceptor;

/// Settings of a server; [`Settings::default`] is meant for the finished server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Addresses to listen on; port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// Event loops, that is threads that serve at the same time while no call sleeps.
    pub event_loops: usize,
    /// Threads at most, those included whose call sleeps.
    pub threads_max: usize,
    /// Connections at most; also bounded by half of the process's descriptors.
    pub connections_max: usize,
    /// Connections at most of one address (IPv6: of one /64).
    pub connections_per_address_max: usize,
    /// Bytes at most held for all connections together: incomplete records and unread replies.
    pub buffered_bytes_max: usize,
    /// Begins TLS with peers that ask for it; without it none may.
    pub tls: Option<Arc<Acceptor>>,
    /// Patience with peers.
    pub patience: Patience,
}

/// The seconds after which a peer is given up.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Seconds from the connection to the first byte.
    pub first_byte_seconds: u32,
    /// Seconds from the first byte of a record to its last.
    pub record_seconds: u32,
    /// Seconds from the answer STARTTLS to the end of the handshake.
    pub handshake_seconds: u32,
    /// Seconds in which the peer reads none of the replies that wait for it.
    pub unread_seconds: u32,
    /// While it says nothing and is owed nothing. Clients keep idle connections for about five
    /// minutes: it must be longer, so that they close first.
    pub idle_seconds: u32,
    /// The most for all of these but the handshake if nothing is offered to the peer: then it can
    /// only ask whether there is a server.
    pub unlisted_seconds: u32,
    /// Seconds for calls in hand and unsent replies at shutdown.
    pub drain_seconds: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let event_loops = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            listen: Vec::new(),
            event_loops,
            threads_max: event_loops + 64,
            connections_max: 16_384,
            connections_per_address_max: 1024,
            buffered_bytes_max: 256 << 20,
            tls: None,
            patience: Patience::default(),
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            first_byte_seconds: 60,
            record_seconds: 60,
            handshake_seconds: 10,
            unread_seconds: 120,
            idle_seconds: 15 * 60,
            unlisted_seconds: 10,
            drain_seconds: 5,
        }
    }
}
