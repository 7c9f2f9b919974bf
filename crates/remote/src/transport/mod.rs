//! Connections to a server: how one is made, and its two halves. Plain TCP is one way; TLS, which
//! proves who both sides are, is another.

mod tcp;
mod tls;

use std::io::{self, Read, Write};
use std::sync::Arc;

pub use tcp::Tcp;
pub(crate) use tcp::dial;
pub use tls::{TlsRefusal, TlsTransport};

/// A way to connect to one server.
pub trait Transport: Send + Sync {
    /// Makes a connection. May take seconds, but not forever.
    ///
    /// # Errors
    /// The server cannot be reached, or is not the one that it should be.
    fn connect(&self) -> io::Result<Duplex>;

    /// The server's name for messages.
    fn peer(&self) -> String;

    /// A way to another port of the same host; `None` if there is none that is as safe as this one.
    fn to_port(&self, port: u16) -> Option<Box<dyn Transport>> {
        let _ = port;
        None
    }
}

/// A way that several clients of the server share.
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
    /// Bytes from the server; waits for them.
    pub reader: Box<dyn Read + Send>,
    /// Bytes to the server. A write that waits for long returns [`io::ErrorKind::WouldBlock`] or
    /// [`io::ErrorKind::TimedOut`] now and then, so that its caller can look about; the next write
    /// then begins with the same bytes.
    pub writer: Box<dyn Write + Send>,
    /// Ends the connection, so that whoever waits in one of its halves returns.
    pub close: Box<dyn Fn() + Send + Sync>,
}
