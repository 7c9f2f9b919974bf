//! Principals: keys and other names (RFC 2704, sections 4.5 and 5.2).

use std::fmt;

use comity_keys::PublicKey;

/// The authorizer of local policies.
const POLICY: &str = "POLICY";

/// A principal in its normalized form: two values are equal if they denote the same principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Principal {
    /// The owner of a key.
    Key(PublicKey),
    /// A name that is compared as a string; it cannot sign.
    Opaque(Box<str>),
}

impl Principal {
    /// The principal with a name. Keys of other algorithms, and invalid keys of supported ones, are
    /// opaque.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match PublicKey::from_keynote(name) {
            Ok(Some(key)) => Self::Key(key),
            _ => Self::Opaque(name.into()),
        }
    }

    /// The principal `POLICY`, from which all trust comes (section 5.3).
    #[must_use]
    pub fn policy() -> Self {
        Self::Opaque(POLICY.into())
    }

    /// The key, if the principal is one.
    #[must_use]
    pub const fn key(&self) -> Option<&PublicKey> {
        match self {
            Self::Key(key) => Some(key),
            Self::Opaque(_) => None,
        }
    }
}

impl From<PublicKey> for Principal {
    fn from(key: PublicKey) -> Self {
        Self::Key(key)
    }
}

/// Writes the name as in assertions.
impl fmt::Display for Principal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => out.write_str(&key.to_keynote()),
            Self::Opaque(name) => out.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use comity_keys::{Algorithm, PrivateKey, Signer};

    use super::*;

    #[test]
    fn keys_are_distinguished_from_names() {
        for algorithm in Algorithm::ALL {
            let key = *PrivateKey::generate(algorithm).unwrap().public_key();
            let principal = Principal::named(&key.to_keynote());
            assert_eq!(principal, key.into());
            assert_eq!((principal.key(), principal.to_string()), (Some(&key), key.to_keynote()));
        }
        for name in ["", "alice", "rsa-hex:00", "ed25519-base64:AAAA", "ed25519-hex:00"] {
            let principal = Principal::named(name);
            assert_eq!((principal.key(), principal.to_string().as_str()), (None, name));
        }
        assert_eq!(Principal::named("POLICY"), Principal::policy());
        assert_ne!(Principal::named("policy"), Principal::policy());
    }
}
