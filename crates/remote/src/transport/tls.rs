use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use comity_keys::PublicKey;
use comity_proto::nfs4::{PROGRAM, VERSION};
use comity_tls::client::{
    ClientIdentity, ServerTrust, StartError, TlsReader, TlsStream, key_refusal, split, start,
};

use super::tcp::{Tcp, WRITE_PAUSE};
use super::{Duplex, Transport};

/// Longest that the server may be silent while TLS begins.
const HANDSHAKE_SILENCE_MAX: Duration = Duration::from_secs(10);

/// TLS on a connection of TCP (RFC 9289), never without it. The server's key is what counts.
///
/// Copies share the key that the server has to have.
#[derive(Debug, Clone)]
pub struct TlsTransport {
    tcp: Tcp,
    identity: Option<Arc<ClientIdentity>>,
    server_key: Arc<Mutex<Option<PublicKey>>>,
}

impl TlsTransport {
    /// A way to a server that has this key. If there is none, the key of the first connection
    /// counts: [`TlsTransport::server_key`] tells it.
    ///
    /// An identity is shown to the server (`xprtsec=mtls`), if there is one.
    #[must_use]
    pub fn new(
        tcp: Tcp,
        identity: Option<Arc<ClientIdentity>>,
        server_key: Option<PublicKey>,
    ) -> Self {
        Self { tcp, identity, server_key: Arc::new(Mutex::new(server_key)) }
    }

    /// The key that the server has to have, or had at the first connection.
    #[must_use]
    pub fn server_key(&self) -> Option<PublicKey> {
        *self.server_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, socket: TcpStream) -> io::Result<TlsStream> {
        socket.set_read_timeout(Some(HANDSHAKE_SILENCE_MAX))?;
        socket.set_write_timeout(Some(HANDSHAKE_SILENCE_MAX))?;
        let expected = self.server_key();
        let trust = ServerTrust::new(expected);
        let started = start(socket, (PROGRAM, VERSION), self.identity.clone(), &trust);
        let stream = started.map_err(|error| refusal(error, expected, trust.seen()))?;
        self.pin(trust.seen())?;
        stream.sock.set_read_timeout(None)?;
        stream.sock.set_write_timeout(Some(WRITE_PAUSE))?;
        Ok(stream)
    }

    /// Holds the server to the key that it has proved. Another connection may have been first.
    fn pin(&self, proved: Option<PublicKey>) -> io::Result<()> {
        let mut pinned = self.server_key.lock().unwrap_or_else(PoisonError::into_inner);
        match (*pinned, proved) {
            (Some(expected), Some(seen)) if expected != seen => {
                Err(TlsRefusal::OtherKey { seen, expected }.into())
            }
            _ => {
                *pinned = pinned.or(proved);
                Ok(())
            }
        }
    }
}

impl Transport for TlsTransport {
    fn connect(&self) -> io::Result<Duplex> {
        let stream = self.begin(self.tcp.socket()?)?;
        let close = super::tcp::closing(&stream.sock)?;
        let (reader, writer) = split(stream)?;
        let reader = KeyedReader { reader, shows_key: self.identity.is_some() };
        Ok(Duplex { reader: Box::new(reader), writer: Box::new(writer), close })
    }

    fn peer(&self) -> String {
        self.tcp.peer()
    }
}

/// Bytes from a server, which may refuse the key of this mount when the first of them are awaited.
struct KeyedReader {
    reader: TlsReader,
    shows_key: bool,
}

impl Read for KeyedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let shows_key = self.shows_key;
        self.reader.read(buffer).map_err(|error| match key_refusal(&error) {
            Some(alert) if shows_key => TlsRefusal::KeyRefused(alert).into(),
            Some(alert) => TlsRefusal::KeyDemanded(alert).into(),
            None => error,
        })
    }
}

/// The server does not speak as the mount demands. A retry is useless until somebody has changed
/// the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsRefusal {
    /// The server does not begin TLS.
    NotOffered,
    /// It has another key.
    OtherKey {
        /// The key that it has.
        seen: PublicKey,
        /// The key that it should have.
        expected: PublicKey,
    },
    /// It refuses the key of the mount, by this alert.
    KeyRefused(String),
    /// It demands a key, which the mount does not show.
    KeyDemanded(String),
    /// The handshake failed.
    Handshake(String),
}

impl TlsRefusal {
    /// The refusal behind an error of a connection, if it is one.
    #[must_use]
    pub fn behind(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for TlsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered => f.write_str(
                "the server does not offer TLS to this machine: have its administrator turn TLS \
                 on and export to this machine, or mount without xprtsec=tls or mtls",
            ),
            Self::OtherKey { seen, expected } => write!(
                f,
                "the server has the key {seen}, and {expected} was expected: somebody may stand \
                 between you and the server; ask its administrator whether the key was changed"
            ),
            Self::KeyRefused(alert) => write!(
                f,
                "the server refuses the key of this mount (TLS alert {alert}): name another one \
                 by -o key=FILE, or have its administrator let this key in; the server's log says \
                 why"
            ),
            Self::KeyDemanded(alert) => write!(
                f,
                "the server lets in only clients that prove a key (TLS alert {alert}): mount with \
                 -o xprtsec=mtls,key=FILE"
            ),
            Self::Handshake(why) => write!(
                f,
                "the TLS handshake failed: {why}; the server's log says more if it refused the key"
            ),
        }
    }
}

impl std::error::Error for TlsRefusal {}

impl From<TlsRefusal> for io::Error {
    fn from(refusal: TlsRefusal) -> Self {
        Self::new(ErrorKind::PermissionDenied, refusal)
    }
}

fn refusal(error: StartError, expected: Option<PublicKey>, seen: Option<PublicKey>) -> io::Error {
    match (error, expected, seen) {
        // The server may be about to start or to end.
        (StartError::Connection(error), ..) => error,
        (StartError::NotOffered, ..) => TlsRefusal::NotOffered.into(),
        (StartError::Handshake(_), Some(expected), Some(seen)) if expected != seen => {
            TlsRefusal::OtherKey { seen, expected }.into()
        }
        (StartError::Handshake(error), ..) => TlsRefusal::Handshake(error.to_string()).into(),
    }
}
