//! Links between keys: credentials lead from the key that signed them to the keys that they name. A
//! new credential is judged by those that are linked to it, and not by all that a key holds.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use comity_keys::PublicKey;

use crate::held::Held;

/// Credentials, found by the key that signed them and by the keys that they name.
#[derive(Debug, Default)]
pub(crate) struct Links {
    by_signer: HashMap<PublicKey, Vec<Arc<Held>>>,
    by_licensee: HashMap<PublicKey, Vec<Arc<Held>>>,
    /// Credentials that name everybody.
    for_everybody: Vec<Arc<Held>>,
}

impl Links {
    /// The links of these credentials.
    pub(crate) fn of(all: &[Arc<Held>]) -> Self {
        let mut links = Self::default();
        all.iter().for_each(|held| links.insert(held));
        links
    }

    /// Adds a credential.
    pub(crate) fn insert(&mut self, held: &Arc<Held>) {
        self.by_signer.entry(*held.signer()).or_default().push(Arc::clone(held));
        let Some(licensees) = &held.licensees else {
            self.for_everybody.push(Arc::clone(held));
            return;
        };
        for key in licensees {
            self.by_licensee.entry(*key).or_default().push(Arc::clone(held));
        }
    }

    /// Takes out credentials. Each list is looked through once.
    pub(crate) fn remove(&mut self, gone: &[Arc<Held>]) {
        let addresses: HashSet<_> = gone.iter().map(Arc::as_ptr).collect();
        let keep = |other: &Arc<Held>| !addresses.contains(&Arc::as_ptr(other));
        let signers: HashSet<_> = gone.iter().map(|held| held.signer()).collect();
        let licensees: HashSet<_> =
            gone.iter().flat_map(|held| &held.licensees).flatten().collect();
        signers.into_iter().for_each(|key| retain(&mut self.by_signer, key, keep));
        licensees.into_iter().for_each(|key| retain(&mut self.by_licensee, key, keep));
        if gone.iter().any(|held| held.licensees.is_none()) {
            self.for_everybody.retain(keep);
        }
    }

    fn signed_by(&self, key: &PublicKey) -> impl Iterator<Item = &Arc<Held>> {
        self.by_signer.get(key).into_iter().flatten()
    }

    /// The credentials that name a key, or everybody.
    fn naming(&self, key: &PublicKey) -> impl Iterator<Item = &Arc<Held>> {
        self.by_licensee.get(key).into_iter().flatten().chain(&self.for_everybody)
    }
}

/// Takes credentials out of the list of a key or object, and the list away if none is left.
pub(crate) fn retain<K: Eq + Hash>(
    lists: &mut HashMap<K, Vec<Arc<Held>>>,
    key: &K,
    keep: impl Fn(&Arc<Held>) -> bool,
) {
    if let Some(list) = lists.get_mut(key) {
        list.retain(keep);
        if list.is_empty() {
            lists.remove(key);
        }
    }
}

/// Returns the signers of new credentials that are trusted, or to which these links lead from a
/// trusted key, and the keys on the way.
pub(crate) fn trusted_signers<'a>(
    links: &[&'a Links],
    new: &'a [Arc<Held>],
    is_trusted: impl Fn(&PublicKey) -> bool,
) -> HashSet<&'a PublicKey> {
    let signers = new.iter().map(|held| held.signer());
    reaching(signers, is_trusted, |key| {
        links.iter().flat_map(|links| links.naming(key)).map(|held| held.signer())
    })
}

/// Returns the licensees of new credentials that are the holder, or from which these links lead to
/// it, and the keys on the way.
pub(crate) fn licensees_for<'a>(
    links: &[&'a Links],
    new: &'a [Arc<Held>],
    holder: &'a PublicKey,
) -> HashSet<&'a PublicKey> {
    let licensees = new.iter().flat_map(|held| &held.licensees).flatten();
    reaching(
        licensees,
        |key| key == holder,
        |key| {
            let signed = links.iter().flat_map(|links| links.signed_by(key));
            signed
                .flat_map(|held| held.licensees.as_deref().unwrap_or(std::slice::from_ref(holder)))
        },
    )
}

/// Searches from some keys. Returns the goals that are found, and the keys from which one of them
/// is reached. `next` returns the neighbours of a key; the search does not go beyond a goal, and
/// visits each key once.
fn reaching<'a, I: Iterator<Item = &'a PublicKey>>(
    from: impl Iterator<Item = &'a PublicKey>,
    is_goal: impl Fn(&PublicKey) -> bool,
    next: impl Fn(&'a PublicKey) -> I,
) -> HashSet<&'a PublicKey> {
    let mut seen = HashSet::new();
    let mut open: Vec<_> = from.filter(|key| seen.insert(*key)).collect();
    let (mut goals, mut steps) = (Vec::new(), HashMap::<_, Vec<_>>::new());
    while let Some(key) = open.pop() {
        if is_goal(key) {
            goals.push(key);
            continue;
        }
        for other in next(key) {
            steps.entry(other).or_default().push(key);
            open.extend(Some(other).filter(|key| seen.insert(*key)));
        }
    }
    let mut found: HashSet<_> = goals.iter().copied().collect();
    while let Some(key) = goals.pop() {
        let before = steps.get(key).into_iter().flatten().copied();
        goals.extend(before.filter(|key| found.insert(*key)));
    }
    found
}
