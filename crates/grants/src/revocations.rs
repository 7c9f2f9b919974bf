//! Revoked credentials and keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use comity_keynote::AssertionDigest;
use comity_keys::PublicKey;

use crate::Moment;
use crate::limits::{
    REVOCATIONS_BY_ADMINISTRATOR_MAX, REVOCATIONS_BY_KEYS_MAX, REVOCATIONS_PER_ACCOUNT_MAX,
    REVOCATIONS_PER_KEY_MAX,
};

/// A credential or a key that no longer gives rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Revoked {
    /// A credential, revoked for all holders.
    Credential(AssertionDigest),
    /// A key: credentials that it signed or that name it give no rights. If `grantor` is the key of
    /// an account, this applies to rights from this account; without one, to all rights.
    Key {
        /// The key that can no longer give or receive rights.
        key: PublicKey,
        /// The account whose rights the key loses; `None` if an administrator revoked it.
        grantor: Option<PublicKey>,
    },
}

/// The person who revokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Revoker {
    /// The administrator of the server, who may revoke anything.
    Administrator,
    /// The owner of a key, who may revoke what the key signed, and what was signed below it.
    Key(PublicKey),
}

/// A revocation, until when it must be remembered, and who made it. It can be forgotten when the
/// revoked credential expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RememberedRevocation {
    /// The credential or key.
    pub what: Revoked,
    /// The moment after which it may be forgotten.
    pub until: Moment,
    /// The first revoker, to whose limit it counts.
    pub by: Revoker,
}

/// The limit that another revocation would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoom {
    /// The limit of one key.
    Key,
    /// The limit of all keys together.
    Keys,
    /// The limit of administrators.
    Administrator,
}

/// All revocations.
#[derive(Debug, Clone, Default)]
pub struct Revocations {
    all: HashMap<Revoked, (Moment, Revoker)>,
    by_revoker: HashMap<Revoker, usize>,
}

impl Revocations {
    /// Adds a revocation. A known one keeps its first revoker and gets the later end.
    pub fn insert(&mut self, RememberedRevocation { what, until, by }: RememberedRevocation) {
        match self.all.entry(what) {
            Entry::Occupied(mut known) => {
                let known = &mut known.get_mut().0;
                *known = until.max(*known);
            }
            Entry::Vacant(place) => {
                place.insert((until, by));
                *self.by_revoker.entry(by).or_default() += 1;
            }
        }
    }

    /// Checks that there is room for revocations by one revoker; known ones need none.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn check_room(
        &self,
        by: Revoker,
        has_account: bool,
        new: impl Iterator<Item = Revoked>,
    ) -> Result<(), NoRoom> {
        let new = new.filter(|what| !self.all.contains_key(what)).count();
        let administrators = self.count_of(Revoker::Administrator);
        let (own, of_keys) = (self.count_of(by) + new, self.len() - administrators + new);
        let (own_max, keys_max) = match has_account {
            true => (REVOCATIONS_PER_ACCOUNT_MAX, REVOCATIONS_BY_KEYS_MAX),
            false => (REVOCATIONS_PER_KEY_MAX, REVOCATIONS_BY_KEYS_MAX / 2),
        };
        match by {
            _ if new == 0 => Ok(()),
            Revoker::Administrator if own > REVOCATIONS_BY_ADMINISTRATOR_MAX => {
                Err(NoRoom::Administrator)
            }
            Revoker::Administrator => Ok(()),
            Revoker::Key(_) if own > own_max => Err(NoRoom::Key),
            Revoker::Key(_) if of_keys > keys_max => Err(NoRoom::Keys),
            Revoker::Key(_) => Ok(()),
        }
    }

    fn count_of(&self, by: Revoker) -> usize {
        self.by_revoker.get(&by).copied().unwrap_or_default()
    }

    /// Returns whether a credential was revoked.
    #[must_use]
    pub fn has_credential(&self, digest: &AssertionDigest) -> bool {
        self.all.contains_key(&Revoked::Credential(*digest))
    }

    /// Returns whether a key can neither give nor receive rights that come from `grantor`.
    #[must_use]
    pub fn has_key(&self, key: &PublicKey, grantor: Option<&PublicKey>) -> bool {
        let by = |grantor| self.all.contains_key(&Revoked::Key { key: *key, grantor });
        by(None) || grantor.is_some_and(|grantor| by(Some(*grantor)))
    }

    /// Forgets the revocations that have expired; returns them.
    pub fn expire(&mut self, now: Moment) -> Vec<Revoked> {
        let expired: Vec<_> = self.all.extract_if(|_, (until, _)| *until <= now).collect();
        for (_, (_, by)) in &expired {
            if let Entry::Occupied(mut count) = self.by_revoker.entry(*by) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
        expired.into_iter().map(|(revoked, _)| revoked).collect()
    }

    /// Returns the number of revocations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns all revocations.
    pub fn iter(&self) -> impl Iterator<Item = RememberedRevocation> {
        self.all.iter().map(|(&what, &(until, by))| RememberedRevocation { what, until, by })
    }
}
