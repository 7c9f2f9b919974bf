//! SubjectPublicKeyInfo in DER (RFC 5280, section 4.1.2.7; RFC 8410; RFC 5480).

use crate::algorithm::Algorithm;
use crate::key_error::KeyError;
use crate::public_key::PublicKey;

/// The bytes before the 32 raw bytes of an Ed25519 key; DER allows no other encoding.
const ED25519: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

/// The bytes before the 65 raw bytes of a P-256 key.
const P256: &[u8] = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\
    \xce\x3d\x03\x01\x07\x03\x42\x00";

const fn prefix(algorithm: Algorithm) -> &'static [u8] {
    match algorithm {
        Algorithm::Ed25519 => ED25519,
        Algorithm::P256 => P256,
    }
}

impl PublicKey {
    /// The key in a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// Another algorithm, a compressed point, or a key that [`PublicKey::from_raw`] refuses.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        for algorithm in Algorithm::ALL {
            if let Some(raw) = der.strip_prefix(prefix(algorithm)) {
                return Self::from_raw(algorithm, raw);
            }
        }
        Err(KeyError::Unsupported("this type of key".into()))
    }

    /// Its SubjectPublicKeyInfo.
    #[must_use]
    pub fn to_spki(&self) -> Vec<u8> {
        [prefix(self.algorithm()), self.as_bytes()].concat()
    }
}
