use std::sync::{Arc, Mutex, PoisonError};

use comity_keys::PublicKey;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme};

/// The server that a client expects. Only its key matters; the rest of its certificate is ignored.
#[derive(Debug)]
pub struct ServerTrust {
    expected: Option<PublicKey>,
    seen: Mutex<Option<PublicKey>>,
    provider: Arc<CryptoProvider>,
}

impl ServerTrust {
    /// Expects a server with this key. Without one any server is accepted, and the caller must
    /// check [`ServerTrust::seen`].
    #[must_use]
    pub fn new(expected: Option<PublicKey>) -> Arc<Self> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        Arc::new(Self { expected, seen: Mutex::default(), provider })
    }

    /// The key that the server has proved.
    #[must_use]
    pub fn seen(&self) -> Option<PublicKey> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn provider(&self) -> &Arc<CryptoProvider> {
        &self.provider
    }
}

impl ServerCertVerifier for ServerTrust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let bad = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
        let key = PublicKey::from_certificate(certificate).map_err(bad)?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        if self.expected.is_some_and(|expected| expected != key) {
            let other = CertificateError::ApplicationVerificationFailure;
            return Err(Error::InvalidCertificate(other));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
