use std::sync::Arc;

use comity_coherence::Hosts;
use comity_export::Exports;
use comity_proto::nfs3::Writeverf3;
use comity_vfs::BlockingHook;

use crate::forward::CallForwarder;

/// The program NFS, version 3.
pub struct Nfs3 {
    exports: Arc<Exports>,
    verifier: Writeverf3,
    hosts: Option<Hosts>,
    blocking: BlockingHook,
    forwarder: Option<Arc<dyn CallForwarder>>,
}

impl Nfs3 {
    /// Serves `exports`. The `verifier` must differ between two lives of the server if
    /// uncommitted data may have been lost in between, and stay the same during one (RFC
    /// 1813, 3.3.7).
    #[must_use]
    pub fn new(exports: Arc<Exports>, verifier: Writeverf3) -> Self {
        Self { exports, verifier, hosts: None, blocking: |work| work(), forwarder: None }
    }

    /// Runs work that may take long through this hook, so that the thread does not delay others.
    #[must_use]
    pub fn blocking(self, hook: BlockingHook) -> Self {
        Self { blocking: hook, ..self }
    }

    /// Recalls delegations of NFSv4 clients that conflict with a call.
    #[must_use]
    pub fn recalling(self, hosts: Hosts) -> Self {
        Self { hosts: Some(hosts), ..self }
    }

    /// Forwards calls about exports that have moved to other servers.
    #[must_use]
    pub fn forwarding(self, forwarder: Arc<dyn CallForwarder>) -> Self {
        Self { forwarder: Some(forwarder), ..self }
    }

    /// Returns the way to other servers.
    pub(crate) fn forwarder(&self) -> Option<&dyn CallForwarder> {
        self.forwarder.as_deref()
    }

    pub(crate) const fn exports(&self) -> &Arc<Exports> {
        &self.exports
    }

    pub(crate) const fn hosts(&self) -> Option<&Hosts> {
        self.hosts.as_ref()
    }

    /// Returns the hook for work that may take long.
    pub(crate) const fn blocking_hook(&self) -> BlockingHook {
        self.blocking
    }

    /// Returns the verifier of WRITE and COMMIT.
    pub(crate) const fn verifier(&self) -> Writeverf3 {
        self.verifier
    }
}
