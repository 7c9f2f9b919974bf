//! All that is known about credentials, as plain data.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use comity_keynote::AssertionDigest;
use comity_keys::PublicKey;

use crate::accounts::Accounts;
use crate::creations::Creations;
use crate::held::{Full, Held, HeldSet};
use crate::limits::{CREDENTIAL_BYTES_MAX, HOLDERS_MAX};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::{Moment, Revocations};

/// A credential as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCredential {
    /// Its digest.
    pub digest: AssertionDigest,
    /// The key that holds it.
    pub holder: PublicKey,
    /// Its text.
    pub text: String,
    /// True if it was revoked, or its signer or a key that it names was.
    pub revoked: bool,
}

/// The credentials of all keys, and what was revoked.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    held: HashMap<PublicKey, HeldSet>,
    /// Credentials that end by themselves, the next one first.
    ends: BTreeSet<(Moment, PublicKey, AssertionDigest)>,
    pub(crate) revocations: Revocations,
    pub(crate) creations: Creations,
    bytes: usize,
}

/// The principals that need nobody to grant them rights.
pub(crate) struct Trusted<'a> {
    pub(crate) accounts: &'a Accounts,
    /// Says whether the policy of an export names a key.
    pub(crate) by_policy: &'a dyn Fn(&PublicKey) -> bool,
    /// The key by which the server signs credentials of creators.
    pub(crate) server: Option<&'a PublicKey>,
}

impl Trusted<'_> {
    fn has(&self, key: &PublicKey) -> bool {
        self.accounts.get(key).is_some() || self.server == Some(key) || (self.by_policy)(key)
    }
}

impl Memory {
    /// Bytes of all texts.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn of(&self, key: &PublicKey) -> Option<&HeldSet> {
        self.held.get(key)
    }

    pub(crate) fn holders(&self) -> impl Iterator<Item = (&PublicKey, &HeldSet)> {
        self.held.iter()
    }

    /// Adds a credential to those of a key; returns `false` if it is held already.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn insert(&mut self, key: PublicKey, held: &Arc<Held>) -> Result<bool, Full> {
        let bytes = held.assertion.text().len();
        let known = self.held.contains_key(&key);
        let is_full = self.bytes + bytes > CREDENTIAL_BYTES_MAX;
        if is_full || (!known && self.held.len() >= HOLDERS_MAX) {
            return Err(Full);
        }
        let is_new = self.held.entry(key).or_default().insert(held)?;
        if is_new {
            self.bytes += bytes;
            if held.until != Moment::NEVER {
                self.ends.insert((held.until, key, held.digest()));
            }
        }
        Ok(is_new)
    }

    /// Takes a credential away from those of a key; returns whether it was there.
    pub(crate) fn remove(&mut self, key: &PublicKey, digest: &AssertionDigest) -> bool {
        let Some(set) = self.held.get_mut(key) else { return false };
        let Some(held) = set.remove(digest) else { return false };
        if set.is_empty() {
            self.held.remove(key);
        }
        self.bytes -= held.assertion.text().len();
        self.ends.remove(&(held.until, *key, *digest));
        true
    }

    /// Takes out the credentials that have ended.
    pub(crate) fn expire(&mut self, now: Moment) -> Vec<(PublicKey, AssertionDigest)> {
        let mut ended = Vec::new();
        while let Some((until, key, digest)) = self.ends.first().copied()
            && until <= now
        {
            self.remove(&key, &digest);
            ended.push((key, digest));
        }
        ended
    }

    /// Credentials that end by themselves before a moment, the next one first.
    pub(crate) fn ending(
        &self,
        before: Moment,
    ) -> impl Iterator<Item = (Moment, PublicKey, &Arc<Held>)> {
        let ends = self.ends.iter().take_while(move |(until, ..)| *until < before);
        ends.filter_map(|(until, key, digest)| Some((*until, *key, self.of(key)?.get(digest)?)))
    }

    /// A credential that some key holds.
    pub(crate) fn find(&self, digest: &AssertionDigest) -> Option<Arc<Held>> {
        self.held.values().find_map(|set| set.get(digest)).cloned()
    }

    /// The credentials that a key signed, whoever holds them.
    pub(crate) fn signed_by(
        &self,
        key: &PublicKey,
    ) -> impl Iterator<Item = (&PublicKey, &Arc<Held>)> {
        let all = self.held.iter().flat_map(|(holder, set)| set.iter().map(move |it| (holder, it)));
        all.filter(move |(_, held)| held.signer() == key)
    }

    /// Tells of each new credential whether the holder can have something through it: somebody who
    /// is trusted leads to its signer, and it leads to the holder.
    pub(crate) fn useful(
        &self,
        holder: &PublicKey,
        trusted: &Trusted<'_>,
        new: &[Arc<Held>],
    ) -> Vec<Result<(), Outcome>> {
        let old = self.held.get(holder);
        let known: Vec<&Arc<Held>> = old.iter().flat_map(|set| set.iter()).chain(new).collect();
        let from = reached(&known, trusted);
        let to = leading(&known, holder);
        let judge =
            |new: &Arc<Held>| match (from.contains(&new.digest()), to.contains(&new.digest())) {
                (false, _) => Err(Outcome::NoAccount),
                (true, false) => Err(Outcome::NotYours),
                (true, true) => Ok(()),
            };
        new.iter().map(judge).collect()
    }

    /// A credential that a key holds, as it is listed.
    pub(crate) fn listed(&self, holder: PublicKey, held: &Held) -> ListedCredential {
        let is_revoked = |key: &PublicKey| self.revocations.has_key(key, Some(held.signer()));
        let revoked = self.revocations.has_credential(&held.digest())
            || is_revoked(held.signer())
            || held.licensees.iter().flatten().any(is_revoked);
        let text = held.assertion.text().to_owned();
        ListedCredential { digest: held.digest(), holder, text, revoked }
    }

    /// All that must be stored.
    pub(crate) fn records(&self) -> Vec<Record> {
        let of_one = |(holder, set): (&PublicKey, &'_ HeldSet)| -> Vec<Record> {
            set.iter().map(|held| held.record(*holder)).collect()
        };
        let revoked =
            self.revocations.iter().map(|(revoked, until)| Record::Revoked(*revoked, *until));
        self.held.iter().flat_map(of_one).chain(revoked).collect()
    }
}

/// The credentials whose signer is trusted, or is named by such a credential, and so on.
fn reached(known: &[&Arc<Held>], trusted: &Trusted<'_>) -> HashSet<AssertionDigest> {
    let is_root = |held: &&Arc<Held>| trusted.has(held.signer());
    spread(known, known.iter().copied().filter(is_root), |from, to| from.names(to.signer()))
}

/// The credentials that name the holder, or somebody who signed such a credential, and so on.
fn leading(known: &[&Arc<Held>], holder: &PublicKey) -> HashSet<AssertionDigest> {
    let is_first = |held: &&Arc<Held>| held.names(holder);
    spread(known, known.iter().copied().filter(is_first), |from, to| to.names(from.signer()))
}

/// The credentials that are reached from the first ones, step by step.
fn spread<'a>(
    known: &[&'a Arc<Held>],
    first: impl Iterator<Item = &'a Arc<Held>>,
    leads: impl Fn(&Held, &Held) -> bool,
) -> HashSet<AssertionDigest> {
    let mut open: Vec<&Arc<Held>> = first.collect();
    let mut found: HashSet<_> = open.iter().map(|held| held.digest()).collect();
    while let Some(from) = open.pop() {
        for to in known {
            if !found.contains(&to.digest()) && leads(from, to) {
                found.insert(to.digest());
                open.push(to);
            }
        }
    }
    found
}
