use std::net::SocketAddr;
use std::sync::Arc;

use comity_tls::Acceptor;

/// Settings of a server; [`Settings::default`] has values for production.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Addresses to listen on; port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// Number of event loops: of threads that serve at the same time while no call sleeps.
    pub event_loops: usize,
    /// Most threads, including those whose call sleeps.
    pub threads_max: usize,
    /// Most connections; also bounded by half of the process's descriptors.
    pub connections_max: usize,
    /// Most connections of one address (IPv6: of one /64).
    pub connections_per_address_max: usize,
    /// Most bytes used for all connections together: incomplete records and unread replies.
    pub buffered_bytes_max: usize,
    /// Accepts TLS from peers that ask for it; none if TLS is not offered.
    pub tls: Option<Arc<Acceptor>>,
    /// Time limits for peers.
    pub patience: Patience,
}

/// The time limits after which a connection is closed.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Seconds from the connection to the first byte.
    pub first_byte_seconds: u32,
    /// Seconds from the first byte of a record to the last.
    pub record_seconds: u32,
    /// Seconds from the reply STARTTLS to the end of the handshake.
    pub handshake_seconds: u32,
    /// Seconds in which the peer may read none of the replies that wait for it.
    pub unread_seconds: u32,
    /// Seconds for which a connection may be idle. Clients close idle connections after about five
    /// minutes; the limit must be longer, so that they close first.
    pub idle_seconds: u32,
    /// Upper bound of all these limits, except that of the handshake, if nothing is offered to the
    /// peer: such a peer can only check that the server runs.
    pub unlisted_seconds: u32,
    /// Seconds for calls under way and unsent replies at shutdown.
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
