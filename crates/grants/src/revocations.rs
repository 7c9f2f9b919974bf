//! Credentials and keys that were revoked.

use std::collections::HashMap;

use comity_keynote::AssertionDigest;
use comity_keys::PublicKey;

use crate::Moment;

/// A credential or a key that gives nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Revoked {
    /// A credential, for everybody.
    Credential(AssertionDigest),
    /// A key: credentials that it signed or that name it give nothing. If `grantor` is a key with
    /// an account, that holds for what comes from this account; if it is none, for everybody.
    Key {
        /// The key that gives and gets nothing any more.
        key: PublicKey,
        /// The account whose rights the key loses; `None` if an administrator revoked it.
        grantor: Option<PublicKey>,
    },
}

/// All that was revoked, and until when it must be remembered: the rights of a revoked credential
/// end by themselves at its expiry.
#[derive(Debug, Clone, Default)]
pub struct Revocations(HashMap<Revoked, Moment>);

impl Revocations {
    /// Adds a revocation that is remembered until then.
    pub fn insert(&mut self, revoked: Revoked, until: Moment) {
        let kept = self.0.entry(revoked).or_insert(until);
        *kept = until.max(*kept);
    }

    /// Returns whether a credential was revoked.
    #[must_use]
    pub fn has_credential(&self, digest: &AssertionDigest) -> bool {
        self.0.contains_key(&Revoked::Credential(*digest))
    }

    /// Returns whether a key gives and gets nothing of the rights that come from `grantor`.
    #[must_use]
    pub fn has_key(&self, key: &PublicKey, grantor: Option<&PublicKey>) -> bool {
        let by = |grantor| self.0.contains_key(&Revoked::Key { key: *key, grantor });
        by(None) || grantor.is_some_and(|grantor| by(Some(*grantor)))
    }

    /// Forgets what has expired; returns it.
    pub fn expire(&mut self, now: Moment) -> Vec<Revoked> {
        self.0.extract_if(|_, until| *until <= now).map(|(revoked, _)| revoked).collect()
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, and until when they are remembered.
    pub fn iter(&self) -> impl Iterator<Item = (&Revoked, &Moment)> {
        self.0.iter()
    }
}
