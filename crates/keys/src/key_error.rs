//! Reasons why a text or a file is no key.

use crate::limits::FILE_BYTES_MAX;

/// Most characters of a hostile name that an error repeats.
const NAME_CHARS_MAX: usize = 40;

/// Tells why bytes are not taken as a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes break the format that they begin with.
    #[error("this is no key: expected {0}")]
    Malformed(&'static str),
    /// The key is of an algorithm that is not supported; the name is cut.
    #[error("{0} is not supported: use an Ed25519 or an ECDSA P-256 key")]
    Unsupported(String),
    /// There are too many bytes.
    #[error("this is no key: it has more than {FILE_BYTES_MAX} bytes")]
    TooLong,
    /// The point of an Ed25519 key has a small order, so that anybody can sign for it.
    #[error("anybody can sign for this key: make another one")]
    Weak,
    /// The point of a P-256 key does not lie on the curve.
    #[error("this is no key: its point does not lie on the curve P-256")]
    NotOnCurve,
    /// The private and the public part do not belong together.
    #[error("this is no key: its private part does not belong to its public part")]
    Inconsistent,
    /// The private key is encrypted and no passphrase was given.
    #[error("the private key is encrypted: give its passphrase")]
    Encrypted,
    /// The passphrase does not decrypt the private key.
    #[error("the passphrase does not fit the private key")]
    WrongPassphrase,
    /// The private key is encrypted in a way that is not supported; the name is cut.
    #[error(
        "the private key is encrypted with {0}, which is not supported: write it anew with \
         `ssh-keygen -p -Z aes256-ctr`, or without a passphrase by `openssl pkey`"
    )]
    UnsupportedEncryption(String),
    /// A private key stands where a public one is wanted.
    #[error("this is a private key: give the public one")]
    Private,
    /// A public key stands where a private one is wanted.
    #[error("this is a public key: give the private one")]
    Public,
    /// The system gave no random numbers.
    #[error("no key could be made: the system gave no random numbers")]
    NotGenerated,
}

impl KeyError {
    /// An algorithm of this name is not supported.
    pub(crate) fn unsupported(name: &str) -> Self {
        Self::Unsupported(quoted(name))
    }
}

/// A piece of hostile text, quoted, cut, and without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(NAME_CHARS_MAX).collect();
    let dots = if cut.len() < text.len() { "..." } else { "" };
    format!("`{}{dots}`", cut.escape_debug())
}
