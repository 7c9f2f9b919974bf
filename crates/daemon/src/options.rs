//! The settings of a server, with all defaults applied.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use comity_export::Source;
use comity_state::Limits;
use comity_tls::client::ServiceFiles;
use comity_vfs::Fs;
use tracing_subscriber::filter::EnvFilter;

use crate::tls::TlsOptions;
use crate::versions::Spoken;

/// The settings of a server.
#[derive(Debug)]
pub struct Options {
    /// The sources of the exports.
    pub sources: Vec<Source>,
    /// An export whose file system is already open.
    pub given: Option<GivenExport>,
    /// The file with the key of the metadata server, if this is a data server.
    pub placement_key: Option<PathBuf>,
    /// True if all exports are read-only.
    pub read_only: bool,
    /// True if all callers may have root's rights.
    pub all_as_root: bool,
    /// True if exports are empty file systems in memory.
    pub in_memory: bool,
    /// The addresses and the port to listen on.
    pub listen: Listen,
    /// The address of the metrics page, if there is one.
    pub metrics: Option<SocketAddr>,
    /// The address of the web page, if there is one.
    pub web: Option<SocketAddr>,
    /// The portmapper that answers clients.
    pub portmap: Portmap,
    /// Number of threads that serve at the same time; `None` for the default.
    pub threads: Option<usize>,
    /// The cluster in which this server is a head, if it is in one.
    pub cluster: Option<ClusterOptions>,
    /// The NFS versions that are enabled.
    pub spoken: Spoken,
    /// Length of a lease in seconds.
    pub lease_seconds: u32,
    /// Limits of the clients' state.
    pub limits: Limits,
    /// True if local programs and clients respect each other's locks and opens.
    pub local_locks: bool,
    /// RPC-with-TLS.
    pub tls: TlsOptions,
    /// Seconds that running calls may take after a stop.
    pub drain_seconds: u32,
    /// Accounts files besides that of `comity account`.
    pub accounts: Vec<PathBuf>,
    /// Number of objects whose decisions are cached for each key that acts by grants.
    pub decisions_per_key: usize,
    /// The folder for data that survives the process: keys, client records, the control socket.
    pub state_folder: PathBuf,
    /// The log level.
    pub level: EnvFilter,
    /// True if output and log are JSON.
    pub json: bool,
}

/// An export whose file system the caller has opened, such as one on another server.
#[derive(Clone)]
pub struct GivenExport {
    /// The path of the export.
    pub path: PathBuf,
    /// The file system that is served there.
    pub fs: Arc<dyn Fs>,
}

impl fmt::Debug for GivenExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenExport").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The settings of a head of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// The addresses of the members of etcd (`http://HOST:PORT`, or all `https://HOST:PORT`).
    pub etcd: Vec<String>,
    /// The files for TLS with etcd, if it is asked over TLS.
    pub etcd_tls: Option<ServiceFiles>,
    /// The name or address of this head, to which clients are referred.
    pub head: String,
    /// Seconds after which a head that is silent is followed by another one.
    pub lease_seconds: u32,
}

/// Addresses with one port.
#[derive(Debug, Clone)]
pub struct Listen {
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// True if the user named the addresses, so that each must exist.
    pub is_explicit: bool,
    /// The port, 0 for any.
    pub port: u16,
}

/// The portmapper that answers clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portmap {
    /// By the portmapper of this machine, if there is one.
    Register,
    /// By a portmapper in this server.
    Embedded,
    /// Not at all.
    None,
}
