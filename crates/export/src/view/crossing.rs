use comity_vfs::Result;

use super::{Node, View};
use crate::{Export, Pseudo};

/// Exports inside exports: NFSv4 clients enter one from the other by name.
impl View<'_> {
    /// Returns the export of the view.
    #[must_use]
    pub fn export(&self) -> &Export {
        self.resolved.export()
    }

    /// Returns whether a node is the top of the export.
    #[must_use]
    pub fn is_root(&self, node: &Node) -> bool {
        *node.handle() == self.fs().root()
    }

    /// The export that covers an object found under `name`, if there is one that the caller may
    /// use.
    ///
    /// # Errors
    /// [`comity_vfs::Status::Delay`] while it is unknown what the caller may use.
    pub fn covering<'p>(
        &self,
        pseudo: &Pseudo<'p>,
        node: &Node,
        name: &[u8],
    ) -> Result<Option<&'p Export>> {
        let stands_here = |export: &&Export| {
            // The covered directory does not depend on the caller, who has already found the node.
            let covered = self.export().below(export.path());
            covered.is_some_and(|covered| covered.handle == *node.handle())
        };
        Ok(pseudo.nested(self.export(), name)?.into_iter().find(stands_here))
    }
}
