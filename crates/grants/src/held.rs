//! A verified credential that a key holds.

use comity_keynote::{
    AssertionDigest, Grant, Need, NeededValue, Principal, SignedAssertion, UnverifiedReason,
};
use comity_keys::PublicKey;

use crate::record::Record;
use crate::{Moment, ObjectId};

/// A verified credential, with the properties by which it is indexed.
#[derive(Debug)]
pub struct Held {
    /// The credential.
    pub assertion: SignedAssertion,
    /// The keys that it names; `None` if it names everybody, or if the names depend on the query.
    pub licensees: Option<Vec<PublicKey>>,
    /// The objects to which, or below which, it can give rights; `None` if that is unknown.
    pub objects: Option<Vec<ObjectId>>,
    /// The moment when it expires; [`Moment::NEVER`] if that is unknown.
    pub until: Moment,
    /// True if it says no more than a [`Grant`] does. Such a credential gives the same rights to
    /// all objects in a directory except its own object.
    pub is_canonical: bool,
}

impl Held {
    /// Reads a credential and verifies its signature.
    ///
    /// # Errors
    /// The fault of the text, or the reason why its signature is invalid.
    pub fn read(text: &str) -> Result<Self, UnverifiedReason> {
        let assertion = SignedAssertion::parse(text)?;
        let prepared = assertion.prepared();
        let keys =
            |names: Vec<&Principal>| names.iter().filter_map(|it| it.key()).copied().collect();
        let licensees = prepared.licensees().map(keys);
        let objects = objects(&assertion);
        let until = end(&assertion);
        let is_canonical = Grant::read(assertion.prepared().assertion()).is_some();
        Ok(Self { assertion, licensees, objects, until, is_canonical })
    }

    /// The key that signed it.
    #[must_use]
    pub const fn signer(&self) -> &PublicKey {
        self.assertion.key()
    }

    /// The digest by which it is revoked.
    #[must_use]
    pub const fn digest(&self) -> AssertionDigest {
        *self.assertion.digest()
    }

    /// Returns whether it names a key, or everybody.
    #[must_use]
    pub fn names(&self, key: &PublicKey) -> bool {
        self.licensees.as_ref().is_none_or(|licensees| licensees.contains(key))
    }

    /// The record that stores it for a key.
    pub(crate) fn record(&self, holder: PublicKey) -> Record {
        let text = self.assertion.text().to_owned();
        Record::Held { holder, digest: self.digest(), text }
    }
}

/// The objects that a credential is limited to: it can give rights only to them and to what is
/// below them. `None` if it may give rights to any object.
fn objects(assertion: &SignedAssertion) -> Option<Vec<ObjectId>> {
    let needs = assertion.prepared().needs(&["object", "within"])?;
    let object = |need: &Need<'_>| match need.value {
        NeededValue::Whole(id) | NeededValue::Part(id) => id.parse().ok(),
    };
    needs.iter().map(object).collect()
}

/// The moment when a credential expires.
fn end(assertion: &SignedAssertion) -> Moment {
    match assertion.prepared().last_moment() {
        None => Moment::NEVER,
        Some("") => Moment::default(),
        // The condition may allow this last second itself.
        Some(last) => {
            last.parse().map_or(Moment::NEVER, |last: Moment| last.after_milliseconds(1_000))
        }
    }
}
