use comity_grants::Operation;
use comity_vfs::{Result, Status};

use super::{Node, View};

/// Leave to change something: it was seen to that the change stands against nothing that clients
/// hold. Every verb of a [`View`] that changes something takes one.
///
/// Only `comity-coherence` gives it, and tests do; `cargo xtask tidy` finds others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clearance(());

impl Clearance {
    /// Gives leave. It is for `comity-coherence` and for tests.
    #[must_use]
    pub const fn given() -> Self {
        Self(())
    }
}

impl View<'_> {
    /// Returns whether the caller counts as the owner of an object or as the superuser.
    ///
    /// # Errors
    /// [`comity_vfs::Status`].
    pub fn owns(&self, node: &Node) -> Result<bool> {
        match self.gate(node, Operation::SetAttributes) {
            Ok(at) => at.fs.owns(at.cred, node.handle()),
            Err(Status::Acces) => Ok(false),
            Err(why) => Err(why),
        }
    }
}
