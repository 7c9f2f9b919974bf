//! Signatures, and things that sign.

use std::fmt;

use crate::agent_error::AgentError;
use crate::base64;
use crate::key_error::KeyError;
use crate::public_key::PublicKey;

/// A signature of either algorithm: 64 bytes. Those of ECDSA are the two numbers r and s, 32 bytes
/// each, the higher bytes first (IEEE 1363).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; Self::BYTES]);

impl Signature {
    /// Length of a signature in bytes.
    pub const BYTES: usize = 64;

    /// The signature of these bytes, if their number is right.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The signature of a text in base64.
    ///
    /// # Errors
    /// A text that is no base64, or a wrong number of bytes.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        Self::from_bytes(&base64::decode(text)?).ok_or(WRONG_LENGTH)
    }

    /// The signature of a text in hexadecimal digits.
    ///
    /// # Errors
    /// A text that has other characters, or a wrong number of bytes.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        Self::from_bytes(&base64::decode_hex(text)?).ok_or(WRONG_LENGTH)
    }

    /// Its text in base64.
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

/// A private key somewhere that signs.
pub trait Signer {
    /// The public key that verifies the signatures.
    fn public_key(&self) -> &PublicKey;

    /// Signs a message.
    ///
    /// # Errors
    /// If the key cannot be used now.
    fn sign(&self, message: &[u8]) -> Result<Signature, SignError>;
}

/// Tells why a message was not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The agent did not sign.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The library did not sign.
    #[error("the message could not be signed with the private key")]
    Failed,
}
