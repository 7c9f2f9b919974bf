use std::sync::Arc;

use comity_coherence::Clock;
use comity_export::Exports;
use comity_proto::nfs4::Verifier4;
use comity_vfs::BlockingHook;
use foldhash::fast::RandomState;

use crate::operation_counters::OperationCounters;
use crate::state_context::Memory;

/// The minor versions that the server supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions(pub [bool; 3]);

impl Versions {
    /// All minor versions: 4.0, 4.1 and 4.2.
    pub const ALL: Self = Self([true; 3]);

    /// Returns whether a minor version is supported.
    #[must_use]
    pub fn speaks(self, minor: u32) -> bool {
        self.0.get(minor as usize).is_some_and(|spoken| *spoken)
    }
}

/// The RPC program NFS, version 4.
pub struct Nfs4 {
    exports: Arc<Exports>,
    verifier: Verifier4,
    versions: Versions,
    memory: Memory,
    /// The hash of requests, by which a retry is recognized.
    digests: RandomState,
    counters: Arc<OperationCounters>,
    blocking: BlockingHook,
}

impl Nfs4 {
    /// Makes the program that serves `exports`. The `verifier` must change whenever uncommitted
    /// data may be lost, in particular at a restart (RFC 8881, 18.32.3).
    #[must_use]
    pub fn new(
        exports: Arc<Exports>,
        verifier: Verifier4,
        versions: Versions,
        memory: Memory,
    ) -> Self {
        let (digests, counters) = (RandomState::default(), Arc::default());
        Self { exports, verifier, versions, memory, digests, counters, blocking: |work| work() }
    }

    /// Runs work that may take long through this hook, so that the thread does not delay others.
    #[must_use]
    pub fn blocking(self, hook: BlockingHook) -> Self {
        Self { blocking: hook, ..self }
    }

    /// Returns the same program with another clock, which recognizes the same retries: for tests in
    /// which time passes as they say.
    #[must_use]
    pub fn with_clock(&self, clock: Clock) -> Self {
        let Self { exports, verifier, versions, memory, digests, counters, blocking } = self;
        Self {
            exports: Arc::clone(exports),
            verifier: *verifier,
            versions: *versions,
            memory: Memory { clock, ..memory.clone() },
            digests: digests.clone(),
            counters: Arc::clone(counters),
            blocking: *blocking,
        }
    }

    pub(crate) const fn digests(&self) -> &RandomState {
        &self.digests
    }

    /// Returns the counts of operations.
    #[must_use]
    pub const fn operation_counters(&self) -> &Arc<OperationCounters> {
        &self.counters
    }

    /// Returns the exports.
    pub(crate) const fn exports(&self) -> &Arc<Exports> {
        &self.exports
    }

    /// Returns the hook for work that may take long.
    pub(crate) const fn blocking_hook(&self) -> BlockingHook {
        self.blocking
    }

    /// Returns the verifier of WRITE and COMMIT.
    pub(crate) const fn verifier(&self) -> Verifier4 {
        self.verifier
    }

    /// Returns the state of clients.
    pub(crate) const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the minor versions that are supported.
    pub(crate) const fn versions(&self) -> Versions {
        self.versions
    }
}
