use std::path::Path;

use comity_vfs::Result;

use super::{Node, View};
use crate::{Export, Pseudo};

/// Where one export stands in another: NFSv4 clients go from one into the other by name.
impl View<'_> {
    /// The export seen.
    #[must_use]
    pub fn export(&self) -> &Export {
        self.pass.export()
    }

    /// Whether a node is the top of the export.
    #[must_use]
    pub fn is_root(&self, node: &Node) -> bool {
        node.0 == self.fs().root()
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
        for export in pseudo.nested(self.export(), name)? {
            if self.stands_on(export.path(), node) {
                return Ok(Some(export));
            }
        }
        Ok(None)
    }

    fn stands_on(&self, path: &Path, node: &Node) -> bool {
        let below = path.strip_prefix(self.export().path());
        below.is_ok_and(|below| self.walk(below).is_ok_and(|found| found == *node))
    }
}
