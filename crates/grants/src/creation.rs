use comity_keys::PublicKey;

use crate::ObjectId;

/// An object and the key that has made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creation {
    /// The object.
    pub object: ObjectId,
    /// The key.
    pub creator: PublicKey,
    /// Grows with each creation, so that it is known which is the oldest.
    pub number: u64,
}
