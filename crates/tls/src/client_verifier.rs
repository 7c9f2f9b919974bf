use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerMisbehaved,
    SignatureScheme,
};

use crate::Trust;
use crate::peer_certificate::{IdentityError, identity};

/// Accepts any certificate as the proof of its key: rustls checks the peer's signature with the
/// key, and the signer of the certificate does not matter.
#[derive(Debug)]
pub(crate) struct ClientVerifier {
    pub(crate) trust: Arc<Trust>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// No authorities are named, so that a client sends any certificate it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        first: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let chain: Vec<CertificateDer<'_>> =
            std::iter::once(first).chain(between).cloned().collect();
        match identity(&chain, &self.trust, &self.algorithms, now.as_secs()) {
            Ok(_) => Ok(ClientCertVerified::assertion()),
            Err(why) => Err(told(why)),
        }
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
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns the error whose alert is most specific for the client.
fn told(why: IdentityError) -> Error {
    Error::InvalidCertificate(match why {
        IdentityError::Malformed => CertificateError::BadEncoding,
        IdentityError::Expired => CertificateError::Expired,
        IdentityError::Early => CertificateError::NotValidYet,
        IdentityError::SeveralUsers | IdentityError::BadUser => {
            CertificateError::Other(OtherError(Arc::new(why)))
        }
    })
}
