//! The NFS server's sockets, threads, limits, metrics and shutdown.
//!
//! **Answers:** how calls get from connections to programs and replies back, how many connections
//! and how much memory each peer may hold for how long, what the counters say, how it ends. NFS is
//! served over TCP only; UDP is not.
//!
//! **May not know:** what a program does, file systems, exports, how the command line looks.
//!
//! Connections are divided among event loops, one for each core. An event loop is run by one
//! thread, which owns it: the epoll set, the connections, their buffers; no lock and no shared
//! counter stands between readiness and reply. Before a call sleeps ([`blocking()`]) its thread
//! leaves the event loop to another, and with it the connection it serves; the reply comes by
//! message. Where nobody else would gain it keeps both.

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
mod handshake;
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
pub use blocking::{blocking, blocking_hook, blocking_on_peers};
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
