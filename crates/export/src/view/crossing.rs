use comity_vfs::Result;

use super::{Node, View};
use crate::{Export, Pseudo};

/// Where one export stands in another: NFSv4 clients go from one into the other by name.
impl View<'_> {
    /// The export seen.
    #[must_use]
    pub fn export(&self) -> &Export {
        self.resolved.export()
    }

    /// Whether a node is the top of the export.
    #[must_use]
    pub fn is_root(&self, node: &Node) -> bool {
        *node.handle() == self.fs().root()
    }

    /// What stands on an object that was found under `name`: an export, if the caller may use it,
    /// or nothing.
    ///
    /// # Errors
    /// [`comity_vfs::Status::Delay`] while it cannot be told what the caller may use.
    pub fn covering<'p>(
        &self,
        pseudo: &Pseudo<'p>,
        node: &Node,
        name: &[u8],
    ) -> Result<Option<&'p Export>> {
        let stands_here = |export: &&Export| {
            // Where it stands does not depend on the caller, who has found the node already.
            let covered = self.export().below(export.path());
            covered.is_some_and(|covered| covered.handle == *node.handle())
        };
        Ok(pseudo.nested(self.export(), name)?.into_iter().find(stands_here))
    }
}
