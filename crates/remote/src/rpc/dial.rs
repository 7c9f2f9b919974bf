use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result};

/// Connects to a server; as root from a reserved port, if one is free.
///
/// # Errors
/// No server listens there.
pub fn dial(address: SocketAddr) -> Result<TcpStream> {
    crate::transport::dial(address)
        .with_context(|| format!("connect {address}: nobody answers there"))
}
