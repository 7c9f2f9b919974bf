use std::fmt;
use std::sync::Arc;

use comity_keys::{Algorithm, Signature, Signer};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData, SignatureAlgorithm, SigningKey,
    date_time_ymd,
};
use rustls::client::ResolvesClientCert;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use rustls::{Error, SignatureScheme};

use crate::ServerKey;

/// The certificate and key by which a client proves its identity. The certificate is self-signed:
/// only the key matters.
pub struct ClientIdentity(Arc<CertifiedKey>);

/// The error if the key could not sign a certificate.
#[derive(Debug, thiserror::Error)]
#[error("the key cannot sign a certificate: {0}")]
pub struct IdentityNotMade(#[from] rcgen::Error);

impl ClientIdentity {
    /// Returns the identity of a server that calls another one: its own certificate.
    #[must_use]
    pub fn of_server(key: &ServerKey) -> Self {
        Self(Arc::clone(key.certified()))
    }

    /// Makes a certificate for a key.
    ///
    /// # Errors
    /// The key does not sign; this can happen with a key in ssh-agent.
    pub fn new(signer: Arc<dyn Signer + Send + Sync>) -> Result<Self, IdentityNotMade> {
        let key = SigningPrivateKey(signer);
        let mut params = CertificateParams::default();
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, "comity client");
        params.distinguished_name = subject;
        [params.not_before, params.not_after] = [2020, 2100].map(|year| date_time_ymd(year, 1, 1));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = CertificateDer::from(params.self_signed(&key)?);
        Ok(Self(Arc::new(CertifiedKey::new(vec![certificate], Arc::new(key)))))
    }
}

impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity")
    }
}

/// Adapts a [`Signer`] to rustls and rcgen.
#[derive(Clone)]
struct SigningPrivateKey(Arc<dyn Signer + Send + Sync>);

impl SigningPrivateKey {
    fn algorithm(&self) -> Algorithm {
        self.0.public_key().algorithm()
    }

    /// A signature in the format of certificates and TLS, which is DER for ECDSA.
    fn signature(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signature = self.0.sign(message).ok()?;
        Some(match self.algorithm() {
            Algorithm::Ed25519 => signature.as_bytes().to_vec(),
            Algorithm::P256 => in_der(&signature),
        })
    }
}

impl PublicKeyData for SigningPrivateKey {
    fn der_bytes(&self) -> &[u8] {
        self.0.public_key().as_bytes()
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        match SigningPrivateKey::algorithm(self) {
            Algorithm::Ed25519 => &PKCS_ED25519,
            Algorithm::P256 => &PKCS_ECDSA_P256_SHA256,
        }
    }
}

impl SigningKey for SigningPrivateKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        self.signature(message).ok_or(rcgen::Error::RemoteKeyError)
    }
}

impl rustls::sign::SigningKey for SigningPrivateKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn rustls::sign::Signer>> {
        let scheme = rustls::sign::Signer::scheme(self);
        offered
            .contains(&scheme)
            .then(|| -> Box<dyn rustls::sign::Signer> { Box::new(self.clone()) })
    }

    fn algorithm(&self) -> rustls::SignatureAlgorithm {
        match SigningPrivateKey::algorithm(self) {
            Algorithm::Ed25519 => rustls::SignatureAlgorithm::ED25519,
            Algorithm::P256 => rustls::SignatureAlgorithm::ECDSA,
        }
    }
}

impl rustls::sign::Signer for SigningPrivateKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.signature(message).ok_or_else(|| Error::General("the key does not sign".into()))
    }

    fn scheme(&self) -> SignatureScheme {
        match SigningPrivateKey::algorithm(self) {
            Algorithm::Ed25519 => SignatureScheme::ED25519,
            Algorithm::P256 => SignatureScheme::ECDSA_NISTP256_SHA256,
        }
    }
}

impl fmt::Debug for SigningPrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningPrivateKey({})", self.0.public_key())
    }
}

/// An ECDSA signature as a SEQUENCE of two INTEGERs (RFC 3279, section 2.2.3).
fn in_der(signature: &Signature) -> Vec<u8> {
    let (r, s) = signature.as_bytes().split_at(Signature::BYTES / 2);
    let body = [integer(r), integer(s)].concat();
    [&[0x30, body.len() as u8][..], &body].concat()
}

/// An INTEGER of DER: without leading zeros, except for one before a byte that would make it
/// negative.
fn integer(bytes: &[u8]) -> Vec<u8> {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len().saturating_sub(1));
    let digits = bytes.get(first..).unwrap_or_default();
    let sign: &[u8] = if digits.first().is_some_and(|byte| byte & 0x80 != 0) { &[0] } else { &[] };
    [&[2, (sign.len() + digits.len()) as u8][..], sign, digits].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_minimal_and_not_negative() {
        assert_eq!(integer(&[0, 0, 5]), [2, 1, 5]);
        assert_eq!(integer(&[0, 0x80]), [2, 2, 0, 0x80]);
        assert_eq!(integer(&[0, 0]), [2, 1, 0]);
        assert_eq!(integer(&[0x7f, 1]), [2, 2, 0x7f, 1]);
    }
}
