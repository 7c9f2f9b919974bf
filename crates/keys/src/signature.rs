//! Signatures, and keys that sign.

use std::fmt;

use crate::agent_error::AgentError;
use crate::base64;
use crate::key_error::KeyError;
use crate::public_key::PublicKey;

/// A signature of either algorithm, with 64 bytes. A signature of ECDSA consists of the numbers r
/// and s with 32 bytes each, the highest byte first (IEEE 1363).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; Self::BYTES]);

impl Signature {
    /// Length of a signature in bytes.
    pub const BYTES: usize = 64;

    /// Makes a signature from its bytes; `None` if their number is wrong.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Decodes a signature in base64.
    ///
    /// # Errors
    /// The text is not base64, or the number of bytes is wrong.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        Self::from_bytes(&base64::decode(text)?).ok_or(WRONG_LENGTH)
    }

    /// Decodes a signature in hexadecimal digits.
    ///
    /// # Errors
    /// The text has other characters, or the number of bytes is wrong.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        Self::from_bytes(&base64::decode_hex(text)?).ok_or(WRONG_LENGTH)
    }

    /// Encodes it in base64.
    #[must_use]
    pub fn to_base64(&self) -> String {
        base64::encode(&self.0)
    }
}

const WRONG_LENGTH: KeyError = KeyError::Malformed("64 bytes of a signature");

impl fmt::Debug for Signature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Signature({})", self.to_base64())
    }
}

/// A private key that can sign, wherever it is stored.
pub trait Signer {
    /// The public key that verifies the signatures.
    fn public_key(&self) -> &PublicKey;

    /// Signs a message.
    ///
    /// # Errors
    /// The key cannot be used now.
    fn sign(&self, message: &[u8]) -> Result<Signature, SignError>;
}

/// The reason why a message was not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The agent did not sign.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The library did not sign.
    #[error("the message could not be signed with the private key")]
    Failed,
}
