//! The digest by which an assertion is revoked.

use std::fmt;
use std::str::FromStr;

/// The SHA-256 hash of the bytes that the signature of an assertion covers, including the name of
/// the signature's algorithm. It does not depend on the signature itself. Its text has 64
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssertionDigest([u8; 32]);

impl AssertionDigest {
    /// The digest of covered bytes.
    pub(crate) fn of(covered: &[u8]) -> Self {
        Self(comity_keys::sha256(covered))
    }

    /// Makes a digest from its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for AssertionDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for AssertionDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The error for a text that is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
pub struct NoDigest;

impl FromStr for AssertionDigest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        let digit = |char: char| char.to_digit(16).map(|digit| digit as u8);
        let digits: Vec<u8> = text.chars().map(digit).collect::<Option<_>>().ok_or(NoDigest)?;
        if !digits.len().is_multiple_of(2) {
            return Err(NoDigest);
        }
        let byte = |pair: &[u8]| pair.iter().fold(0, |all, digit| all << 4 | digit);
        let bytes: Vec<u8> = digits.chunks_exact(2).map(byte).collect();
        bytes.try_into().map(Self).map_err(|_| NoDigest)
    }
}
