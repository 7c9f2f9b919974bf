//! The arguments for the web pages of a server.

use std::net::SocketAddr;

use clap::Args;

/// Web pages that the server has in addition to NFS.
#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// Serve metrics for Prometheus at this address and port
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,

    /// Serve a web page at this loopback address and port: the load live, clients, exports, grants
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) web: Option<SocketAddr>,
}
