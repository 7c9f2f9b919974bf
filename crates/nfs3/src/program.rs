use std::sync::Arc;

use comity_export::Exports;
use comity_proto::nfs3::Writeverf3;

use crate::recall::Delegated;

/// The program NFS, version 3.
pub struct Nfs3 {
    exports: Arc<Exports>,
    verifier: Writeverf3,
    delegated: Option<Delegated>,
}

impl Nfs3 {
    /// Serves `exports`. The `verifier` must be another in every life of the server that can have
    /// lost uncommitted data, and the same during one (RFC 1813, 3.3.7).
    #[must_use]
    pub const fn new(exports: Arc<Exports>, verifier: Writeverf3) -> Self {
        Self { exports, verifier, delegated: None }
    }

    /// Recalls what NFSv4 clients were delegated where a call stands against it.
    #[must_use]
    pub fn recalling(self, delegated: Delegated) -> Self {
        Self { delegated: Some(delegated), ..self }
    }

    pub(crate) const fn exports(&self) -> &Arc<Exports> {
        &self.exports
    }

    pub(crate) const fn delegated(&self) -> Option<&Delegated> {
        self.delegated.as_ref()
    }

    /// What a WRITE or COMMIT is signed with.
    pub(crate) const fn verifier(&self) -> Writeverf3 {
        self.verifier
    }
}
