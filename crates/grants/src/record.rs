use std::error::Error as StdError;

use comity_keynote::AssertionDigest;
use comity_keys::PublicKey;

use crate::creation::Creation;
use crate::{Moment, ObjectId, RememberedRevocation, Revoked};

/// A change of what must outlive a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A credential is held for a key.
    Held {
        /// The key whose session submitted it.
        holder: PublicKey,
        /// The digest of the credential.
        digest: AssertionDigest,
        /// Its text.
        text: String,
    },
    /// A credential is held for a key no more.
    Dropped {
        /// The key.
        holder: PublicKey,
        /// The digest of the credential.
        digest: AssertionDigest,
    },
    /// Something was revoked.
    Revoked(RememberedRevocation),
    /// A revocation is forgotten, because what it revoked has expired.
    Forgotten(Revoked),
    /// A key has made an object.
    Made(Creation),
    /// Nobody counts as the creator of an object any more.
    Unmade(ObjectId),
    /// The clock has shown this moment, at which a right ended.
    Seen(Moment),
}

/// Why a [`Medium`] could not store records.
pub type MediumError = Box<dyn StdError + Send + Sync>;

/// A place that keeps records on stable storage.
pub trait Medium: Send + Sync {
    /// Applies records in their order, all or none, and puts them on stable storage.
    ///
    /// # Errors
    /// It is unknown then whether they are stored.
    fn store(&self, records: &[Record]) -> Result<(), MediumError>;

    /// Replaces all that is stored by `records`, on stable storage. After an error of
    /// [`Medium::store`] nothing else is called until this has succeeded.
    ///
    /// # Errors
    /// The storage failed; the earlier records are unchanged.
    fn replace(&self, records: &[Record]) -> Result<(), MediumError>;
}

/// All that an earlier server stored.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The texts of credentials, and the keys they are held for.
    pub held: Vec<(PublicKey, String)>,
    /// Revocations.
    pub revoked: Vec<RememberedRevocation>,
    /// The creators of objects, in any order.
    pub made: Vec<Creation>,
    /// The last moment that the clock is known to have shown.
    pub seen: Moment,
}
