use comity_keys::PublicKey;

use crate::ObjectId;

/// An object and the key that has made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creation {
    /// The object.
    pub object: ObjectId,
    /// The key.
    pub creator: PublicKey,
    /// Its number in the order of creations.
    pub number: u64,
}
