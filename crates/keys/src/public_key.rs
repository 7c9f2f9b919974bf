//! A public key: its bytes, its text, and the verification of signatures.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, UnparsedPublicKey, VerificationAlgorithm,
};

use crate::algorithm::Algorithm;
use crate::base64;
use crate::key_error::KeyError;

/// A public key. Two keys are equal if they verify the same signatures.
///
/// Its text is `ed25519:` or `p256:`, followed by its raw bytes in base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey(RawKey);

/// The raw bytes of a valid key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum RawKey {
    Ed25519([u8; 32]),
    P256([u8; 65]),
}

/// All encodings of points whose order divides eight, without the sign bit.
const SMALL_ORDER: [[u8; 32]; 7] = [
    [0; 32],
    with_ends(0x01, 0x00, 0x00),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
    with_ends(0xec, 0xff, 0x7f),
    with_ends(0xed, 0xff, 0x7f),
    with_ends(0xee, 0xff, 0x7f),
];

/// Thirty-two bytes with these lowest, middle and highest bytes.
const fn with_ends(lowest: u8, middle: u8, highest: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    bytes[0] = lowest;
    bytes[31] = highest;
    bytes
}

fn has_small_order(bytes: &[u8; 32]) -> bool {
    let mut point = *bytes;
    if let Some(last) = point.last_mut() {
        *last &= 0x7f;
    }
    SMALL_ORDER.contains(&point)
}

impl PublicKey {
    /// Makes a key from raw bytes: 32 for Ed25519, or 65 of an uncompressed point for P-256 (SEC
    /// 1).
    ///
    /// # Errors
    /// A wrong number of bytes, a point that is not on the curve, or a key whose signatures anybody
    /// can forge.
    pub fn from_raw(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, KeyError> {
        match algorithm {
            Algorithm::Ed25519 => {
                let wrong = KeyError::Malformed("32 bytes of an Ed25519 key");
                let point: [u8; 32] = bytes.try_into().map_err(|_| wrong)?;
                if has_small_order(&point) {
                    return Err(KeyError::Weak);
                }
                Ok(Self(RawKey::Ed25519(point)))
            }
            Algorithm::P256 => {
                let wrong = KeyError::Malformed("65 bytes of an uncompressed point of P-256");
                let point: [u8; 65] = bytes.try_into().map_err(|_| wrong.clone())?;
                if point.first() != Some(&4) {
                    return Err(wrong);
                }
                ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .map_err(|_| KeyError::NotOnCurve)?;
                Ok(Self(RawKey::P256(point)))
            }
        }
    }

    /// Its algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self.0 {
            RawKey::Ed25519(_) => Algorithm::Ed25519,
            RawKey::P256(_) => Algorithm::P256,
        }
    }

    /// Its raw bytes, in the format of [`PublicKey::from_raw`].
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            RawKey::Ed25519(bytes) => bytes,
            RawKey::P256(bytes) => bytes,
        }
    }

    /// Returns whether the owner of this key signed the message.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &'static dyn VerificationAlgorithm = match self.0 {
            RawKey::Ed25519(_) => &ED25519,
            RawKey::P256(_) => &ECDSA_P256_SHA256_FIXED,
        };
        UnparsedPublicKey::new(algorithm, self.as_bytes()).verify(message, signature).is_ok()
    }

    /// Its name in KeyNote assertions: `ed25519-base64:` or `p256-base64:`, followed by its raw
    /// bytes.
    #[must_use]
    pub fn to_keynote(&self) -> String {
        format!("{}-base64:{}", self.algorithm().name(), base64::encode(self.as_bytes()))
    }

    /// The key in a KeyNote name, in base64 or in hexadecimal digits (RFC 2792, section 3); `None`
    /// if the algorithm is not supported, so that the name is opaque. The case of the algorithm's
    /// name is ignored (RFC 2704, section 9.2).
    ///
    /// # Errors
    /// The prefix is that of a supported key, but the rest is invalid.
    pub fn from_keynote(name: &str) -> Result<Option<Self>, KeyError> {
        let Some((prefix, encoded)) = name.split_once(':') else { return Ok(None) };
        let Some((algorithm, encoding)) = prefix.rsplit_once('-') else { return Ok(None) };
        let is_it = |known: &Algorithm| known.name().eq_ignore_ascii_case(algorithm);
        let Some(algorithm) = Algorithm::ALL.into_iter().find(is_it) else { return Ok(None) };
        match encoding.to_ascii_lowercase().as_str() {
            "base64" => Self::from_raw(algorithm, &base64::decode(encoded)?).map(Some),
            "hex" => Self::from_raw(algorithm, &base64::decode_hex(encoded)?).map(Some),
            _ => Ok(None),
        }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.algorithm().name(), base64::encode(self.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let wrong = KeyError::Malformed("`ed25519:` or `p256:` and base64");
        let (name, encoded) = text.split_once(':').ok_or(wrong)?;
        let found = Algorithm::ALL.into_iter().find(|known| known.name() == name);
        let algorithm = found.ok_or_else(|| KeyError::unsupported(name))?;
        Self::from_raw(algorithm, &base64::decode(encoded)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the identity as R and zero as S, a signature is valid for a key A if the hash of the
    /// message times A is the identity. If the order of A is small, this is so for at least one
    /// message in eight.
    #[test]
    fn anybody_could_sign_for_the_keys_of_small_order() {
        let mut signature = [0; 64];
        signature[0] = 1;
        for point in SMALL_ORDER {
            let key = UnparsedPublicKey::new(&ED25519, point);
            let is_signed = |message: u32| key.verify(&message.to_be_bytes(), &signature).is_ok();
            // The library itself may refuse encodings that are not reduced.
            let is_reduced = point[31] != 0x7f || point[0] == 0xec;
            assert!((0..400).any(is_signed) || !is_reduced, "{point:x?}");
            assert_eq!(PublicKey::from_raw(Algorithm::Ed25519, &point), Err(KeyError::Weak));
        }
    }
}
