//! Locks that were granted to hosts of NLM, whose answer to NLM_GRANTED is awaited.

use crate::{ByteRange, FileKey, LockType};

/// A granted lock whose owner may not know of it yet.
#[derive(Debug)]
pub(crate) struct UnacknowledgedGrant {
    pub(crate) owner: u32,
    pub(crate) file: FileKey,
    pub(crate) range: ByteRange,
    pub(crate) kind: LockType,
    /// Locks within the range that the owner had before, and knows of.
    pub(crate) before: Vec<(ByteRange, LockType)>,
}
