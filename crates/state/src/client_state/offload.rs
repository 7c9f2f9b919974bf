//! Copies of a client that are under way or have ended (RFC 7862, 4).

use std::collections::HashMap;
use std::time::Duration;

use crate::id_hasher::BuildIdHasher;
use crate::{Error, FileKey, Principal, Result, SequenceAnswer, Verifier};

/// The end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffloadEnd {
    /// Its status, by the protocol's number (`nfsstat4`).
    pub status: u32,
    /// The verifier of its writes.
    pub verifier: Verifier,
}

/// A copy that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginOffload {
    /// The file that is written.
    pub file: FileKey,
    /// The principal that asked: no other may cancel it (RFC 7862, 4.3).
    pub principal: Principal,
    /// The request that asks for it: its answer may still be under way when the copy has ended.
    pub asked_by: SequenceAnswer,
}

/// The copies of a client.
#[derive(Default)]
pub(crate) struct Offloads(pub(crate) HashMap<u32, Offload, BuildIdHasher>);

pub(crate) struct Offload {
    pub(crate) wanted: BeginOffload,
    pub(crate) began: Duration,
    pub(crate) copied: u64,
    /// A piece is being copied.
    pub(crate) busy: bool,
    pub(crate) cancelled: bool,
    /// Since when there are no more pieces.
    pub(crate) over: Option<Duration>,
    /// Its end, if it was not cancelled before.
    pub(crate) end: Option<OffloadEnd>,
}

impl Offloads {
    /// Returns whether one has this number.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.0.contains_key(&number)
    }

    /// Forgets those that were over before, told or not.
    pub(crate) fn forget(&mut self, before: Duration) {
        self.0.retain(|_, offload| offload.over.is_none_or(|at| at >= before));
    }

    pub(crate) fn of(&mut self, file: &FileKey, number: u32) -> Result<&mut Offload> {
        let found = self.0.get_mut(&number).filter(|offload| offload.wanted.file == *file);
        found.ok_or(Error::BadStateid)
    }
}
