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

/// Longest time that the server may be silent during the TLS handshake.
const HANDSHAKE_SILENCE_MAX: Duration = Duration::from_secs(10);

/// TLS over a TCP connection (RFC 9289), with no fallback to plain TCP. The server is identified by
/// its key.
///
/// Clones share the key that the server must prove.
#[derive(Debug, Clone)]
pub struct TlsTransport {
    tcp: Tcp,
    identity: Option<Arc<ClientIdentity>>,
    server_key: Arc<Mutex<Option<PublicKey>>>,
}

impl TlsTransport {
    /// Makes a transport to a server that must prove this key. Without one, the key of the first
    /// connection is pinned: [`TlsTransport::server_key`] returns it.
    ///
    /// With an identity, the client proves its own key too (`xprtsec=mtls`).
    #[must_use]
    pub fn new(
        tcp: Tcp,
        identity: Option<Arc<ClientIdentity>>,
        server_key: Option<PublicKey>,
    ) -> Self {
        Self { tcp, identity, server_key: Arc::new(Mutex::new(server_key)) }
    }

    /// The key that the server must prove: the given one, or that of the first connection.
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

    /// Checks the key that the server has proved, or pins it if none is pinned. Another connection
    /// may have pinned one meanwhile.
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

/// The reading half. In TLS 1.3 the server refuses the client's key only after the handshake, so
/// the refusal appears at the first read.
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

/// The reason why TLS failed. A retry cannot help until the configuration is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsRefusal {
    /// The server does not offer TLS.
    NotOffered,
    /// It has proved another key.
    OtherKey {
        /// The key that it has proved.
        seen: PublicKey,
        /// The key that was expected.
        expected: PublicKey,
    },
    /// It refused the client's key with this alert.
    KeyRefused(String),
    /// It demands a key and the client has shown none; this is its alert.
    KeyDemanded(String),
    /// The handshake failed.
    Handshake(String),
}

impl TlsRefusal {
    /// The refusal inside a connection error, if there is one.
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
        // Not a refusal: the server may be starting or stopping.
        (StartError::Connection(error), ..) => error,
        (StartError::NotOffered, ..) => TlsRefusal::NotOffered.into(),
        (StartError::Handshake(_), Some(expected), Some(seen)) if expected != seen => {
            TlsRefusal::OtherKey { seen, expected }.into()
        }
        (StartError::Handshake(error), ..) => TlsRefusal::Handshake(error.to_string()).into(),
    }
}
