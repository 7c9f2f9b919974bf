use std::sync::Arc;

use comity_credential::PeerIdentity;
use rustls::AlertDescription;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, InsufficientSizeError, UnbufferedStatus,
};

use crate::accepting::Accepting;
use crate::limits::HANDSHAKE_BYTES_MAX;
use crate::{IdentityError, RecordLayer, record_bytes};

/// The server's side of a handshake. It has no socket: its user passes bytes in and out.
pub struct Handshake {
    connection: UnbufferedServerConnection,
    accepting: Arc<Accepting>,
    /// Bytes of the peer that rustls has not consumed.
    received: Vec<u8>,
    received_total: usize,
    /// Bytes of `received` that were passed to rustls: whole records of the handshake. Records
    /// after the handshake are left to the [`RecordLayer`].
    shown: usize,
}

/// The state of a handshake after a step.
pub enum HandshakeStep {
    /// The peer must send more.
    Pending(Box<Handshake>),
    /// The handshake is finished.
    Done(Box<Established>),
}

/// The outcome of a handshake.
pub struct Established {
    /// The keys of the connection.
    pub session: RecordLayer,
    /// The identity that the peer has proved; `None` if it has shown no certificate.
    pub identity: Option<Arc<PeerIdentity>>,
    /// Bytes after the handshake, still encrypted.
    pub sealed: Vec<u8>,
}

/// The reason why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The peer violated TLS 1.3, or ended the handshake.
    #[error("{}", advice(.0))]
    Tls(#[from] rustls::Error),
    /// The peer sent more bytes than allowed.
    #[error(
        "the peer sent more than {HANDSHAKE_BYTES_MAX} bytes: its certificate chain is too long; \
         configure only those between its own and an authority of this server"
    )]
    Long,
    /// The peer's certificate is refused.
    #[error("{0}")]
    Identity(#[from] IdentityError),
}

/// The state of a handshake after one pass of rustls.
enum Pass {
    /// The handshake may have more to do.
    Again,
    Blocked,
    Finished,
}

impl Handshake {
    pub(crate) fn new(accepting: Arc<Accepting>) -> Result<Self, rustls::Error> {
        let connection = UnbufferedServerConnection::new(Arc::clone(&accepting.config))?;
        Ok(Self { connection, accepting, received: Vec::new(), received_total: 0, shown: 0 })
    }

    /// Accepts bytes from the peer.
    ///
    /// # Errors
    /// [`HandshakeError::Long`].
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        self.received_total += bytes.len();
        if self.received_total > HANDSHAKE_BYTES_MAX {
            return Err(HandshakeError::Long);
        }
        self.received.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns whether a whole record has arrived, so that [`Handshake::advance`] can continue.
    #[must_use]
    pub fn has_record(&self) -> bool {
        let behind = self.received.get(self.shown..).unwrap_or_default();
        record_bytes(behind).map_or(true, |bytes| bytes.is_some_and(|bytes| bytes <= behind.len()))
    }

    /// Continues the handshake with the received bytes, and appends the bytes for the peer to
    /// `out`. After an error these are an alert with the reason. It takes up to a millisecond of
    /// public-key cryptography.
    ///
    /// # Errors
    /// [`HandshakeError`].
    pub fn advance(
        mut self: Box<Self>,
        out: &mut Vec<u8>,
    ) -> Result<HandshakeStep, HandshakeError> {
        loop {
            match self.pass(out) {
                Ok(Pass::Again) => {}
                Ok(Pass::Blocked) => match self.show_record() {
                    Ok(true) => {}
                    Ok(false) => return Ok(HandshakeStep::Pending(self)),
                    Err(error) => return Err(error.into()),
                },
                Ok(Pass::Finished) => {
                    return self.finish().map(|done| HandshakeStep::Done(Box::new(done)));
                }
                Err(error) => {
                    // This appends the alert.
                    let _ = self.pass(out);
                    return Err(tls_error(error));
                }
            }
        }
    }

    fn pass(&mut self, out: &mut Vec<u8>) -> Result<Pass, rustls::Error> {
        let shown = self.received.get_mut(..self.shown).unwrap_or_default();
        let UnbufferedStatus { discard, state, .. } = self.connection.process_tls_records(shown);
        let pass = match state? {
            ConnectionState::EncodeTlsData(data) => encode(data, out)?,
            ConnectionState::TransmitTlsData(data) => {
                data.done();
                Pass::Again
            }
            ConnectionState::WriteTraffic(_) | ConnectionState::BlockedHandshake => Pass::Blocked,
            _ => return Err(rustls::Error::HandshakeNotComplete),
        };
        self.received.drain(..discard.min(self.received.len()));
        self.shown = self.shown.saturating_sub(discard);
        // rustls lets the server write before the peer's last flight has arrived, so check that the
        // handshake is over.
        let is_finished = matches!(pass, Pass::Blocked) && !self.connection.is_handshaking();
        Ok(if is_finished { Pass::Finished } else { pass })
    }

    /// Passes one more record to rustls; returns whether a whole one had arrived.
    fn show_record(&mut self) -> Result<bool, rustls::Error> {
        let next = record_bytes(self.received.get(self.shown..).unwrap_or_default())?;
        let end = next.map(|bytes| self.shown + bytes).filter(|end| *end <= self.received.len());
        self.shown = end.unwrap_or(self.shown);
        Ok(end.is_some())
    }

    fn finish(self: Box<Self>) -> Result<Established, HandshakeError> {
        let Self { connection, accepting, received, .. } = *self;
        let identity = match connection.peer_certificates() {
            Some(chain) => Some(Arc::new(accepting.identity(chain)?)),
            None => None,
        };
        let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
        let session = RecordLayer::new(secrets, kernel)?;
        Ok(Established { session, identity, sealed: received })
    }
}

fn encode(
    mut data: EncodeTlsData<'_, ServerConnectionData>,
    out: &mut Vec<u8>,
) -> Result<Pass, rustls::Error> {
    let begun = out.len();
    let mut room = 0;
    loop {
        out.resize(begun + room, 0);
        match data.encode(out.get_mut(begun..).unwrap_or_default()) {
            Ok(written) => {
                out.truncate(begun + written);
                return Ok(Pass::Again);
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size }))
                if required_size > room =>
            {
                room = required_size;
            }
            Err(_) => return Err(rustls::Error::General("a flight was encoded twice".into())),
        }
    }
}

/// Describes why a handshake failed, with a remedy if there is one.
fn advice(error: &rustls::Error) -> String {
    use AlertDescription::{
        BadCertificate, CertificateExpired, CertificateUnknown, UnknownCA, UnsupportedCertificate,
    };
    let what = match error {
        rustls::Error::AlertReceived(
            UnknownCA | BadCertificate | CertificateUnknown | UnsupportedCertificate,
        ) => {
            "the peer does not trust the server's certificate, or mounts by a name that is not in \
             it: give it that certificate, or use one for that name"
        }
        rustls::Error::AlertReceived(CertificateExpired) => {
            "the peer says that the server's certificate has expired: compare the clocks, or renew \
             it and reload"
        }
        rustls::Error::NoApplicationProtocol => "the peer asks for another protocol than sunrpc",
        rustls::Error::InvalidMessage(_) => "the bytes after the probe are not TLS",
        rustls::Error::PeerIncompatible(_) => {
            "the peer has no version, cipher or key exchange in common with the server, which \
             speaks TLS 1.3"
        }
        _ => return error.to_string(),
    };
    format!("{what} ({error})")
}

/// Converts the refusal of a certificate to an error of this crate, if there is one.
fn tls_error(error: rustls::Error) -> HandshakeError {
    use rustls::CertificateError::{BadEncoding, Expired, ExpiredContext, NotValidYet, Other};
    let rustls::Error::InvalidCertificate(why) = &error else { return error.into() };
    match why {
        Expired | ExpiredContext { .. } => IdentityError::Expired.into(),
        NotValidYet => IdentityError::Early.into(),
        BadEncoding => IdentityError::Malformed.into(),
        Other(other) => match other.0.downcast_ref::<IdentityError>() {
            Some(why) => (*why).into(),
            None => error.into(),
        },
        _ => error.into(),
    }
}
