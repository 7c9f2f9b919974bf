//! Locks of a host of NLM that wait for its answer to NLM_GRANTED.

use crate::{ByteRange, FileKey, LockType};

/// A lock that its owner may not know of.
#[derive(Debug)]
pub(crate) struct UnacknowledgedGrant {
    pub(crate) owner: u32,
    pub(crate) file: FileKey,
    pub(crate) range: ByteRange,
    pub(crate) kind: LockType,
    /// Locks of the range that the owner held before, and knows of.
    pub(crate) before: Vec<(ByteRange, LockType)>,
}
