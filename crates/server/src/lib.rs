//! The NFS server's sockets, threads, limits, metrics and shutdown.
//!
//! **Answers:** how calls get from connections to programs and replies back, how many connections
//! and how much memory each peer may use for how long, which counters there are, how the server
//! ends. NFS is served over TCP only; UDP is not.
//!
//! **May not know:** the purpose of a program, file systems, exports, the command line.
//!
//! Connections are divided among event loops, one for each core. An event loop is run by one
//! thread, which owns the epoll set, the connections and their buffers, so that no lock and no
//! shared counter is used between readiness and reply. Before a call sleeps ([`blocking()`]), its
//! thread hands the event loop to another thread, and with it the connection; the reply is passed
//! back in a message. If no other connection or call would benefit, the thread keeps both.

mod acceptor;
mod activation;
mod admission;
mod blocking;
mod close_reason;
mod connection;
mod connection_io;
mod connection_limit;
pub mod control;
mod counters;
mod datagrams;
mod event_loop;
mod handoff;
mod handshake_slots;
mod handshaking;
mod http_service;
pub mod limits;
mod listen;
mod log_rate_limit;
mod memory_budget;
pub mod metrics;
mod per_second;
pub mod portmap;
mod receive_buffer;
mod reply_writer;
mod rpc_client;
mod server;
mod service;
mod settings;
mod shared;
mod sleepers;
mod sys;
mod thread_pool;
mod transport;
mod worker;

pub use activation::inherited_listeners;
pub use blocking::{
    blocking, blocking_for_long, blocking_for_long_hook, blocking_hook, blocking_on_peers,
};
pub use connection_limit::ConnectionBounds;
pub use counters::{Counter, PeerStats, ServerStats};
pub use datagrams::Datagrams;
pub use http_service::HttpService;
pub use listen::{ListenError, listen};
pub use log_rate_limit::LogRateLimit;
pub use rpc_client::{CallError, OneWayTarget, RemoteCall};
pub use server::{Server, StartError, raise_descriptor_limit};
pub use service::{Endpoints, Service};
pub use settings::{Patience, Settings};
