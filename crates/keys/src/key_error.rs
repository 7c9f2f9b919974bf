//! Errors of texts and files that are not keys.

use crate::limits::FILE_BYTES_MAX;

/// Most characters of a name that an error shows.
const NAME_CHARS_MAX: usize = 40;

/// The reason why bytes are not accepted as a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes violate their format.
    #[error("this is no key: expected {0}")]
    Malformed(&'static str),
    /// The algorithm of the key is not supported; its name is shortened.
    #[error("{0} is not supported: use an Ed25519 or an ECDSA P-256 key")]
    Unsupported(String),
    /// There are too many bytes.
    #[error("this is no key: it has more than {FILE_BYTES_MAX} bytes")]
    TooLong,
    /// The point of an Ed25519 key has a small order, so that anybody can forge its signatures.
    #[error("anybody can sign for this key: make another one")]
    Weak,
    /// The point of a P-256 key does not lie on the curve.
    #[error("this is no key: its point does not lie on the curve P-256")]
    NotOnCurve,
    /// The private and the public part do not match.
    #[error("this is no key: its private part does not belong to its public part")]
    Inconsistent,
    /// The private key is encrypted and no passphrase was given.
    #[error("the private key is encrypted: give its passphrase")]
    Encrypted,
    /// The passphrase is wrong.
    #[error("the passphrase does not fit the private key")]
    WrongPassphrase,
    /// The encryption of the private key is not supported; its name is shortened.
    #[error(
        "the private key is encrypted with {0}, which is not supported: write it anew with \
         `ssh-keygen -p -Z aes256-ctr`, or without a passphrase by `openssl pkey`"
    )]
    UnsupportedEncryption(String),
    /// A private key was given instead of a public one.
    #[error("this is a private key: give the public one")]
    Private,
    /// A public key was given instead of a private one.
    #[error("this is a public key: give the private one")]
    Public,
    /// The system supplied no random numbers.
    #[error("no key could be made: the system gave no random numbers")]
    NotGenerated,
}

impl KeyError {
    /// Makes the error for an algorithm that is not supported.
    pub(crate) fn unsupported(name: &str) -> Self {
        Self::Unsupported(quoted(name))
    }
}

/// A piece of the text, quoted, shortened, and without control characters, because it may be
/// hostile.
pub(crate) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(NAME_CHARS_MAX).collect();
    let dots = if cut.len() < text.len() { "..." } else { "" };
    format!("`{}{dots}`", cut.escape_debug())
}
