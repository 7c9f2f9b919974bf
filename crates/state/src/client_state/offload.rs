//! Copies of a client that are under way or have ended (RFC 7862, 4).

use std::collections::HashMap;
use std::time::Duration;

use crate::id_hasher::BuildIdHasher;
use crate::{Error, FileKey, Principal, Result, SequenceAnswer, Verifier};

/// The result of a copy that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffloadEnd {
    /// Its status (`nfsstat4`).
    pub status: u32,
    /// The verifier of its writes.
    pub verifier: Verifier,
}

/// A copy that a client requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginOffload {
    /// The file that is written.
    pub file: FileKey,
    /// The principal that requested it.
    pub principal: Principal,
    /// The request for the copy. Its reply may still be on its way when the copy ends.
    pub asked_by: SequenceAnswer,
}

/// The copies of a client.
#[derive(Default)]
pub(crate) struct Offloads(pub(crate) HashMap<u32, Offload, BuildIdHasher>);

pub(crate) struct Offload {
    pub(crate) wanted: BeginOffload,
    pub(crate) began: Duration,
    pub(crate) copied: u64,
    /// True while a thread copies a piece.
    pub(crate) busy: bool,
    pub(crate) cancelled: bool,
    /// Time at which the last piece was copied.
    pub(crate) over: Option<Duration>,
    /// Its result, unless it was cancelled before.
    pub(crate) end: Option<OffloadEnd>,
}

impl Offloads {
    /// Returns whether a copy has this number.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.0.contains_key(&number)
    }

    /// Forgets copies that ended before this time, even if their client was not notified.
    pub(crate) fn forget(&mut self, before: Duration) {
        self.0.retain(|_, offload| offload.over.is_none_or(|at| at >= before));
    }

    pub(crate) fn of(&mut self, file: &FileKey, number: u32) -> Result<&mut Offload> {
        let found = self.0.get_mut(&number).filter(|offload| offload.wanted.file == *file);
        found.ok_or(Error::BadStateid)
    }
}
