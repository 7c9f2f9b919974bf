//! Connections to a server and their two halves, over plain TCP or over TLS, by which both sides
//! prove their identity.

mod tcp;
mod tls;

use std::io::{self, Read, Write};
use std::sync::Arc;

pub use tcp::Tcp;
pub(crate) use tcp::dial;
pub use tls::{TlsRefusal, TlsTransport};

/// A means to connect to one server.
pub trait Transport: Send + Sync {
    /// Makes a connection. It may take seconds, but always ends.
    ///
    /// # Errors
    /// The server cannot be reached, or has proved the wrong key.
    fn connect(&self) -> io::Result<Duplex>;

    /// The server's name for messages.
    fn peer(&self) -> String;

    /// A transport to another port of the same host; `None` if none is as secure as this one.
    fn to_port(&self, port: u16) -> Option<Box<dyn Transport>> {
        let _ = port;
        None
    }
}

/// A transport that several clients of the server share.
impl Transport for Arc<dyn Transport> {
    fn connect(&self) -> io::Result<Duplex> {
        self.as_ref().connect()
    }

    fn peer(&self) -> String {
        self.as_ref().peer()
    }

    fn to_port(&self, port: u16) -> Option<Box<dyn Transport>> {
        self.as_ref().to_port(port)
    }
}

/// A connection.
pub struct Duplex {
    /// Reads bytes from the server; blocks until some arrive.
    pub reader: Box<dyn Read + Send>,
    /// Writes bytes to the server. A write that blocks for long returns
    /// [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`] now and then, so that its
    /// caller can check for an interrupt; the next write then begins with the same bytes.
    pub writer: Box<dyn Write + Send>,
    /// Ends the connection, so that threads blocked in one of its halves return.
    pub close: Box<dyn Fn() + Send + Sync>,
}
