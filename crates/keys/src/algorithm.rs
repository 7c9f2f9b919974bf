//! The algorithms, with their names in the formats.

/// An algorithm of keys and signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Ed25519 (RFC 8032).
    Ed25519,
    /// ECDSA over P-256 with SHA-256 (FIPS 186-5).
    P256,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 2] = [Self::Ed25519, Self::P256];

    /// The name in this project's own text format: `ed25519` or `p256`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::P256 => "p256",
        }
    }

    /// The name in the files and messages of OpenSSH (RFC 8709, RFC 5656).
    #[must_use]
    pub const fn openssh_name(self) -> &'static str {
        match self {
            Self::Ed25519 => "ssh-ed25519",
            Self::P256 => "ecdsa-sha2-nistp256",
        }
    }

    /// The algorithm with this name in the files and messages of OpenSSH.
    pub(crate) fn from_openssh_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.openssh_name().as_bytes() == name)
    }
}
