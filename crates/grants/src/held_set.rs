//! The credentials that one key holds, indexed by the objects they name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use comity_keynote::AssertionDigest;

use crate::ObjectId;
use crate::held::Held;
use crate::limits::{CREDENTIAL_BYTES_PER_KEY_MAX, CREDENTIALS_PER_KEY_MAX};
use crate::links::{Links, retain};

/// The credentials of one key. A question about an object reads only those that name it or a
/// directory above it, and those whose objects are unknown.
#[derive(Debug, Default)]
pub(crate) struct HeldSet {
    all: HashMap<AssertionDigest, Arc<Held>>,
    by_object: HashMap<ObjectId, Vec<Arc<Held>>>,
    general: Vec<Arc<Held>>,
    links: Links,
    bytes: usize,
}

/// The error when there is no room for a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no room for more credentials: a key may hold {CREDENTIALS_PER_KEY_MAX} of \
     {CREDENTIAL_BYTES_PER_KEY_MAX} bytes together; drop some with `comity grants --drop`"
)]
pub struct Full;

impl HeldSet {
    /// Adds a credential; returns false if the key holds it already.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn insert(&mut self, held: &Arc<Held>) -> Result<bool, Full> {
        let digest = held.digest();
        if self.all.contains_key(&digest) {
            return Ok(false);
        }
        let bytes = held.assertion.text().len();
        self.check_room(1, bytes)?;
        self.bytes += bytes;
        self.all.insert(digest, Arc::clone(held));
        self.links.insert(held);
        match &held.objects {
            Some(objects) => {
                for object in objects {
                    self.by_object.entry(*object).or_default().push(Arc::clone(held));
                }
            }
            None => self.general.push(Arc::clone(held)),
        }
        Ok(true)
    }

    /// Checks that there is room for `count` more credentials of `bytes` bytes together.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn check_room(&self, count: usize, bytes: usize) -> Result<(), Full> {
        let is_full = self.all.len() + count > CREDENTIALS_PER_KEY_MAX
            || self.bytes + bytes > CREDENTIAL_BYTES_PER_KEY_MAX;
        if is_full { Err(Full) } else { Ok(()) }
    }

    /// Removes and returns those of these credentials that the key holds. Each list is searched
    /// once.
    pub(crate) fn remove(&mut self, digests: &[AssertionDigest]) -> Vec<Arc<Held>> {
        let gone: Vec<_> = digests.iter().filter_map(|digest| self.all.remove(digest)).collect();
        let addresses: HashSet<_> = gone.iter().map(Arc::as_ptr).collect();
        let keep = |other: &Arc<Held>| !addresses.contains(&Arc::as_ptr(other));
        let objects: HashSet<_> = gone.iter().flat_map(|held| &held.objects).flatten().collect();
        objects.into_iter().for_each(|object| retain(&mut self.by_object, object, keep));
        if gone.iter().any(|held| held.objects.is_none()) {
            self.general.retain(keep);
        }
        self.links.remove(&gone);
        self.bytes -= gone.iter().map(|held| held.assertion.text().len()).sum::<usize>();
        gone
    }

    /// The credentials that may give rights to the first of these objects; the others are the
    /// directories above it.
    pub(crate) fn about<'a>(&'a self, objects: &[ObjectId]) -> impl Iterator<Item = &'a Arc<Held>> {
        let found = objects.iter().filter_map(|object| self.by_object.get(object)).flatten();
        self.general.iter().chain(found)
    }

    /// The objects that credentials name.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &ObjectId> {
        self.by_object.keys()
    }

    /// Returns whether a credential names an object itself.
    pub(crate) fn names(&self, object: &ObjectId) -> bool {
        self.by_object.contains_key(object)
    }

    /// Returns the links that they make between keys.
    pub(crate) const fn links(&self) -> &Links {
        &self.links
    }

    /// Returns whether the key holds a credential.
    pub(crate) fn has(&self, digest: &AssertionDigest) -> bool {
        self.all.contains_key(digest)
    }

    /// Returns a credential by its digest.
    pub(crate) fn get(&self, digest: &AssertionDigest) -> Option<&Arc<Held>> {
        self.all.get(digest)
    }

    /// Returns all credentials.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Held>> {
        self.all.values()
    }

    /// Returns the number of credentials.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
