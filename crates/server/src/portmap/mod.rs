//! Telling clients at which port we are: by a portmapper that runs here already ([`Registration`])
//! or by one of our own ([`Portmapper`]). Neither is needed; a client can be told the port.

mod embedded;
mod program;
mod register;

use std::net::SocketAddr;

pub use embedded::{PortmapError, Portmapper};
pub use register::{RegisterError, Registration};

/// A version of a program, and where it listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// Program number.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// Where, over TCP.
    pub address: SocketAddr,
}
