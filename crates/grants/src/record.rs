use std::error::Error as StdError;

use comity_keynote::AssertionDigest;
use comity_keys::PublicKey;
use comity_vfs::AsServer;

use crate::creation::Creation;
use crate::{Moment, ObjectId, RememberedRevocation, Revoked};

/// A change that must be stored to survive a restart.
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
    /// A key no longer holds a credential.
    Dropped {
        /// The key.
        holder: PublicKey,
        /// The digest of the credential.
        digest: AssertionDigest,
    },
    /// Something was revoked.
    Revoked(RememberedRevocation),
    /// A revocation is forgotten, because the revoked credential has expired.
    Forgotten(Revoked),
    /// A key has made an object.
    Made(Creation),
    /// The creator of an object is forgotten.
    Unmade(ObjectId),
    /// A right ended at this moment of the clock.
    Seen(Moment),
}

/// The reason why a [`Medium`] could not store records.
pub type MediumError = Box<dyn StdError + Send + Sync>;

/// Stores records on stable storage. They are not files of a caller, so a write needs the evidence
/// that the thread has the server's own identity.
pub trait Medium: Send + Sync {
    /// Applies records in order, all or none, and puts them on stable storage.
    ///
    /// # Errors
    /// It is then unknown whether they are stored.
    fn store(&self, server: &AsServer, records: &[Record]) -> Result<(), MediumError>;

    /// Replaces all stored records by `records`, on stable storage. After an error of
    /// [`Medium::store`] this is the only function that is called until it succeeds.
    ///
    /// # Errors
    /// The storage failed; the earlier records are unchanged.
    fn replace(&self, server: &AsServer, records: &[Record]) -> Result<(), MediumError>;
}

/// The records that an earlier run of the server stored.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The texts of credentials, with their holders.
    pub held: Vec<(PublicKey, String)>,
    /// Revocations.
    pub revoked: Vec<RememberedRevocation>,
    /// The creators of objects, in any order.
    pub made: Vec<Creation>,
    /// The last moment of the clock that was stored.
    pub seen: Moment,
}

/// A [`Medium`] that stores nothing, for measurements and tests. All grants are lost with the
/// process.
#[derive(Debug, Clone, Copy)]
pub struct Unstored;

impl Medium for Unstored {
    fn store(&self, _: &AsServer, _: &[Record]) -> Result<(), MediumError> {
        Ok(())
    }

    fn replace(&self, _: &AsServer, _: &[Record]) -> Result<(), MediumError> {
        Ok(())
    }
}
