//! The settings of a server, with every default decided.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use comity_export::Source;
use comity_state::Limits;
use comity_vfs::Fs;
use tracing_subscriber::filter::EnvFilter;

use crate::tls::TlsOptions;
use crate::versions::Spoken;

/// The settings of a server.
#[derive(Debug)]
pub struct Options {
    /// The sources of the exports.
    pub sources: Vec<Source>,
    /// An export whose file system is open already.
    pub given: Option<GivenExport>,
    /// The file with the key of the metadata server, if this is a data server.
    pub placement_key: Option<PathBuf>,
    /// Nobody may change anything.
    pub read_only: bool,
    /// Callers may all have root's rights.
    pub all_as_root: bool,
    /// Files are in memory, whatever the folders hold.
    pub in_memory: bool,
    /// The addresses and the port to listen on.
    pub listen: Listen,
    /// The address of the metrics page, if there is one.
    pub metrics: Option<SocketAddr>,
    /// The address of the web page, if there is one.
    pub web: Option<SocketAddr>,
    /// The way in which clients that ask for ports get an answer.
    pub portmap: Portmap,
    /// Threads that serve at the same time, if not the usual number.
    pub threads: Option<usize>,
    /// The NFS versions that are spoken.
    pub spoken: Spoken,
    /// Seconds that a client of NFSv4 may be silent.
    pub lease_seconds: u32,
    /// Bounds of the clients' state.
    pub limits: Limits,
    /// Local programs and clients respect each other's locks and opens.
    pub local_locks: bool,
    /// RPC-with-TLS.
    pub tls: TlsOptions,
    /// Seconds that calls in hand get at the end.
    pub drain_seconds: u32,
    /// Files of accounts beside those that `comity account` made.
    pub accounts: Vec<PathBuf>,
    /// Objects whose decisions are kept for each key that acts by grants.
    pub decisions_per_key: usize,
    /// The folder of the data that outlive the process: keys, client records, the control socket.
    pub state_folder: PathBuf,
    /// The log level.
    pub level: EnvFilter,
    /// True if output and log are JSON.
    pub json: bool,
}

/// An export whose file system is opened by the caller, as one of another server is.
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

/// Addresses and one port.
#[derive(Debug, Clone)]
pub struct Listen {
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// True if the user named the addresses: then each must exist.
    pub is_explicit: bool,
    /// The port, 0 for any.
    pub port: u16,
}

/// The way in which clients that ask a portmapper get an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portmap {
    /// From the portmapper of this machine, if there is one.
    Register,
    /// From this server.
    Embedded,
    /// Not at all.
    None,
}
