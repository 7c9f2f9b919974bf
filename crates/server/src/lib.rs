//! The shell: sockets, threads, limits, metrics, shutdown.
//!
//! **Answers:** how calls get from connections to programs and replies back, who may hold how many
//! connections and how much memory for how long, what the server did (numbers), how it ends.
//! NFS is served over TCP only; UDP is not.
//!
//! **May not know:** what a program does, file systems, exports, how the command line looks.
//!
//! Connections are divided among desks, one for each core. A desk is run by one thread, which owns
//! it: the epoll set, the connections, their buffers; no lock and no shared counter stands between
//! readiness and reply. Before a call sleeps ([`blocking()`]) its thread leaves the desk to
//! another, and with it the connection it serves; the reply comes by letter. Where nobody else
//! would gain it keeps both.

mod activation;
mod admission;
mod blocking;
mod budget;
mod connection;
pub mod control;
mod counters;
mod crew;
mod datagrams;
mod desk;
mod errand;
mod farewell;
mod floor;
mod inbox;
pub mod limits;
mod listen;
pub mod metrics;
pub mod portmap;
mod post;
mod quiet;
mod reception;
mod send;
mod server;
mod service;
mod settings;
mod sleepers;
mod sys;
mod tray;
mod turn;
mod worker;

pub use activation::inherited_listeners;
pub use blocking::{blocking, blocking_hook, blocking_on_peers};
pub use counters::{Counter, ShellNumbers};
pub use datagrams::Datagrams;
pub use errand::{Errand, Failure, Mailbox};
pub use listen::{ListenError, listen};
pub use quiet::Quiet;
pub use server::{Server, StartError, raise_descriptor_limit};
pub use service::{Ends, Service};
pub use settings::{Patience, Settings};
