use comity_vfs::FileKey;

use super::{Node, View};

impl View<'_> {
    /// The key of a file, the same in all exports that show it.
    #[must_use]
    #[inline]
    pub fn key(&self, node: &Node) -> FileKey {
        self.resolved.export().key(node.handle())
    }
}
