//! All credentials, revocations and creations in memory.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use comity_keynote::AssertionDigest;
use comity_keys::PublicKey;

use crate::accounts::Accounts;
use crate::creations::Creations;
use crate::held::Held;
use crate::held_set::{Full, HeldSet};
use crate::limits::{CREDENTIAL_BYTES_MAX, HOLDERS_MAX};
use crate::links::{Links, licensees_for, trusted_signers};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::{Moment, Revocations};

/// A credential in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCredential {
    /// Its digest.
    pub digest: AssertionDigest,
    /// The key that holds it.
    pub holder: PublicKey,
    /// Its text.
    pub text: String,
    /// True if it, its signer or a key that it names was revoked.
    pub revoked: bool,
}

/// The credentials of all keys, the revocations and the creations.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    held: HashMap<PublicKey, HeldSet>,
    /// The credentials that each key signed, with their holders.
    by_signer: HashMap<PublicKey, HashSet<(PublicKey, AssertionDigest)>>,
    /// Credentials that expire, in order of expiry.
    ends: BTreeSet<(Moment, PublicKey, AssertionDigest)>,
    pub(crate) revocations: Revocations,
    pub(crate) creations: Creations,
    bytes: usize,
}

/// The principals whose rights come from no credential.
pub(crate) struct Trusted<'a> {
    pub(crate) accounts: &'a Accounts,
    /// Returns whether the policy of an export names a key.
    pub(crate) by_policy: &'a dyn Fn(&PublicKey) -> bool,
    /// The key by which the server signs credentials for creators.
    pub(crate) server: Option<&'a PublicKey>,
}

impl Trusted<'_> {
    fn has(&self, key: &PublicKey) -> bool {
        self.accounts.get(key).is_some() || self.server == Some(key) || (self.by_policy)(key)
    }
}

impl Memory {
    /// Bytes of the texts of all credentials.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn of(&self, key: &PublicKey) -> Option<&HeldSet> {
        self.held.get(key)
    }

    pub(crate) fn holders(&self) -> impl Iterator<Item = (&PublicKey, &HeldSet)> {
        self.held.iter()
    }

    /// Checks that there is room for more credentials of a key.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn check_room(&self, key: &PublicKey, new: &[Arc<Held>]) -> Result<(), Full> {
        let bytes = new.iter().map(|held| held.assertion.text().len()).sum();
        let set = self.held.get(key);
        let is_full = self.bytes + bytes > CREDENTIAL_BYTES_MAX;
        if is_full || (set.is_none() && self.held.len() >= HOLDERS_MAX) {
            return Err(Full);
        }
        set.unwrap_or(&HeldSet::default()).check_room(new.len(), bytes)
    }

    /// Adds a credential of a key; returns false if the key holds it already.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn insert(&mut self, key: PublicKey, held: &Arc<Held>) -> Result<bool, Full> {
        let bytes = held.assertion.text().len();
        self.check_room(&key, std::slice::from_ref(held))?;
        let is_new = self.held.entry(key).or_default().insert(held)?;
        if is_new {
            self.bytes += bytes;
            self.by_signer.entry(*held.signer()).or_default().insert((key, held.digest()));
            if held.until != Moment::NEVER {
                self.ends.insert((held.until, key, held.digest()));
            }
        }
        Ok(is_new)
    }

    /// Removes credentials of a key.
    pub(crate) fn remove(&mut self, key: &PublicKey, digests: &[AssertionDigest]) {
        let Some(set) = self.held.get_mut(key) else { return };
        let gone = set.remove(digests);
        if set.is_empty() {
            self.held.remove(key);
        }
        for held in gone {
            self.bytes -= held.assertion.text().len();
            self.ends.remove(&(held.until, *key, held.digest()));
            if let Entry::Occupied(mut signed) = self.by_signer.entry(*held.signer()) {
                signed.get_mut().remove(&(*key, held.digest()));
                if signed.get().is_empty() {
                    signed.remove();
                }
            }
        }
    }

    /// Removes the credentials that have expired.
    pub(crate) fn expire(&mut self, now: Moment) -> Vec<(PublicKey, AssertionDigest)> {
        let ended = self.ends.iter().take_while(|(until, ..)| *until <= now);
        let ended: Vec<_> = ended.map(|(_, key, digest)| (*key, *digest)).collect();
        let mut by_key: HashMap<PublicKey, Vec<AssertionDigest>> = HashMap::new();
        ended.iter().for_each(|(key, digest)| by_key.entry(*key).or_default().push(*digest));
        by_key.iter().for_each(|(key, digests)| self.remove(key, digests));
        ended
    }

    /// Credentials that expire before a moment, in order of expiry.
    pub(crate) fn ending(
        &self,
        before: Moment,
    ) -> impl Iterator<Item = (Moment, PublicKey, &Arc<Held>)> {
        let ends = self.ends.iter().take_while(move |(until, ..)| *until < before);
        ends.filter_map(|(until, key, digest)| Some((*until, *key, self.of(key)?.get(digest)?)))
    }

    /// Finds a credential that any key holds.
    pub(crate) fn find(&self, digest: &AssertionDigest) -> Option<Arc<Held>> {
        self.held.values().find_map(|set| set.get(digest)).cloned()
    }

    /// The credentials that a key signed, of all holders.
    pub(crate) fn signed_by(
        &self,
        key: &PublicKey,
    ) -> impl Iterator<Item = (&PublicKey, &Arc<Held>)> {
        let signed = self.by_signer.get(key).into_iter().flatten();
        signed.filter_map(|(holder, digest)| Some((holder, self.of(holder)?.get(digest)?)))
    }

    /// Returns whether a key holds or signed a credential.
    pub(crate) fn knows(&self, key: &PublicKey) -> bool {
        self.held.contains_key(key) || self.by_signer.contains_key(key)
    }

    /// Returns for each new credential whether it can give the holder a right: its signer must be
    /// trusted directly or through other credentials, and it must name the holder directly or
    /// through others.
    pub(crate) fn useful(
        &self,
        holder: &PublicKey,
        trusted: &Trusted<'_>,
        new: &[Arc<Held>],
    ) -> Vec<Result<(), Outcome>> {
        let fresh = Links::of(new);
        let old = self.held.get(holder).map(HeldSet::links);
        let links: Vec<_> = old.into_iter().chain([&fresh]).collect();
        let signers = trusted_signers(&links, new, |key| trusted.has(key));
        let licensees = licensees_for(&links, new, holder);
        let leads = |named: &Vec<PublicKey>| named.iter().any(|key| licensees.contains(key));
        let judge = |held: &Arc<Held>| {
            if !signers.contains(held.signer()) {
                Err(Outcome::NoAccount)
            } else if held.licensees.as_ref().is_none_or(leads) {
                Ok(())
            } else {
                Err(Outcome::NotYours)
            }
        };
        new.iter().map(judge).collect()
    }

    /// A credential of a key, for a list.
    pub(crate) fn listed(&self, holder: PublicKey, held: &Held) -> ListedCredential {
        let is_revoked = |key: &PublicKey| self.revocations.has_key(key, Some(held.signer()));
        let revoked = self.revocations.has_credential(&held.digest())
            || is_revoked(held.signer())
            || held.licensees.iter().flatten().any(is_revoked);
        let text = held.assertion.text().to_owned();
        ListedCredential { digest: held.digest(), holder, text, revoked }
    }

    /// All records to store.
    pub(crate) fn records(&self) -> Vec<Record> {
        let of_one = |(holder, set): (&PublicKey, &'_ HeldSet)| -> Vec<Record> {
            set.iter().map(|held| held.record(*holder)).collect()
        };
        let revoked = self.revocations.iter().map(Record::Revoked);
        let made = self.creations.iter().map(|creation| Record::Made(*creation));
        self.held.iter().flat_map(of_one).chain(revoked).chain(made).collect()
    }
}

#[cfg(test)]
mod tests {
    use comity_keys::{Algorithm, PrivateKey, Signer};
    use proptest::option::weighted;
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    use super::*;

    /// A credential by the key of this number for other keys, or for everybody.
    fn credential(
        keys: &[PrivateKey],
        (signer, licensees): &(usize, Option<Vec<usize>>),
    ) -> Arc<Held> {
        let name = |number: &usize| format!("\"{}\"", keys[*number].public_key().to_keynote());
        let named =
            licensees.as_ref().map(|them| them.iter().map(name).collect::<Vec<_>>().join(" || "));
        let named = named.map_or_else(String::new, |them| format!("Licensees: {them}\n"));
        let text = format!("Authorizer: {}\n{named}Conditions: true -> \"r\";\n", name(signer));
        Arc::new(Held::read(&comity_keynote::sign(&text, &keys[*signer]).unwrap()).unwrap())
    }

    /// The definition in its simplest form, which is slow.
    fn spread(
        known: &[&Arc<Held>],
        is_first: impl Fn(&Held) -> bool,
        leads: impl Fn(&Held, &Held) -> bool,
    ) -> HashSet<AssertionDigest> {
        let mut found: HashSet<_> =
            known.iter().filter(|held| is_first(held)).map(|held| held.digest()).collect();
        loop {
            let leads = |to: &Held| {
                known.iter().any(|from| found.contains(&from.digest()) && leads(from, to))
            };
            let more: Vec<_> = known.iter().filter(|to| leads(to)).map(|to| to.digest()).collect();
            let before = found.len();
            found.extend(more);
            if found.len() == before {
                return found;
            }
        }
    }

    /// Judges each new credential beside the known ones, as the definition says.
    fn judged(
        known: &[&Arc<Held>],
        (root, holder): (&PublicKey, &PublicKey),
        new: &[Arc<Held>],
    ) -> Vec<Result<(), Outcome>> {
        let from = spread(known, |held| held.signer() == root, |from, to| from.names(to.signer()));
        let to = spread(known, |held| held.names(holder), |from, to| to.names(from.signer()));
        let judge = |held: &Arc<Held>| match held.digest() {
            digest if !from.contains(&digest) => Err(Outcome::NoAccount),
            digest if !to.contains(&digest) => Err(Outcome::NotYours),
            _ => Ok(()),
        };
        new.iter().map(judge).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn new_credentials_are_judged_as_the_definition_says(
            links in prop::collection::vec(
                (0_usize..6, weighted(0.9, subsequence((0..6).collect::<Vec<_>>(), 1..3))),
                0..10,
            ),
            before in any::<prop::sample::Index>(),
        ) {
            let keys: Vec<_> =
                (0..6).map(|_| PrivateKey::generate(Algorithm::Ed25519).unwrap()).collect();
            let all: Vec<_> = links.iter().map(|link| credential(&keys, link)).collect();
            let (old, new) = all.split_at(before.index(all.len() + 1));
            let (root, holder) = (*keys[0].public_key(), *keys[1].public_key());
            let mut memory = Memory::default();
            for held in old {
                memory.insert(holder, held).unwrap();
            }
            // A credential that was removed does not count.
            let gone = old.first().map(|held| held.digest());
            memory.remove(&holder, gone.as_slice());
            let held = old.iter().filter(|held| Some(held.digest()) != gone);
            let known: Vec<_> = held.chain(new).collect();
            let (accounts, is_root) = (Accounts::default(), |key: &PublicKey| *key == root);
            let trusted = Trusted { accounts: &accounts, by_policy: &is_root, server: None };
            let expected = judged(&known, (&root, &holder), new);
            prop_assert_eq!(memory.useful(&holder, &trusted, new), expected);
        }
    }
}
