use std::sync::Arc;

use comity_export::Exports;
use comity_proto::nfs4::Verifier4;
use foldhash::fast::RandomState;

use crate::state_context::Memory;
use crate::tally::Tally;

/// The minor versions that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions(pub [bool; 3]);

impl Versions {
    /// All: 4.0, 4.1 and 4.2.
    pub const ALL: Self = Self([true; 3]);

    /// Returns whether a minor version is spoken.
    #[must_use]
    pub fn speaks(self, minor: u32) -> bool {
        self.0.get(minor as usize).is_some_and(|spoken| *spoken)
    }
}

/// The program NFS, version 4.
pub struct Nfs4 {
    exports: Arc<Exports>,
    verifier: Verifier4,
    versions: Versions,
    memory: Memory,
    /// By what a request that comes again is told from another.
    digests: RandomState,
    tally: Arc<Tally>,
}

impl Nfs4 {
    /// Serves `exports`. The `verifier` must be another in every life of the server that can have
    /// lost uncommitted data, and the same during one (RFC 8881, 18.32.3).
    #[must_use]
    pub fn new(
        exports: Arc<Exports>,
        verifier: Verifier4,
        versions: Versions,
        memory: Memory,
    ) -> Self {
        let digests = RandomState::default();
        Self { exports, verifier, versions, memory, digests, tally: Arc::default() }
    }

    pub(crate) const fn digests(&self) -> &RandomState {
        &self.digests
    }

    /// Returns the counts of operations.
    #[must_use]
    pub const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Returns the exports.
    pub(crate) const fn exports(&self) -> &Arc<Exports> {
        &self.exports
    }

    /// Returns the verifier of WRITE and COMMIT.
    pub(crate) const fn verifier(&self) -> Verifier4 {
        self.verifier
    }

    /// Returns the state of clients.
    pub(crate) const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The minor versions that are spoken.
    pub(crate) const fn versions(&self) -> Versions {
        self.versions
    }
}
