use comity_vfs::{Attr, Change, Disk, Result};

use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::attr;
use crate::passthrough::handles::node::Node;

impl Passthrough {
    /// Does `work` in a directory; returns the directory's attributes before and after. This server
    /// makes no other change of the directory between them.
    pub(crate) fn change_directory<T>(
        &self,
        dir: &Node,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Change<Disk>)> {
        let held = dir.hold_patiently()?;
        let before = attr(&dir.mount, &self.stat(dir)?);
        let value = work()?;
        dir.barrier.changed();
        let change = self.since(dir, Some(before));
        drop(held);
        Ok((value, change))
    }

    /// Returns the change of a node whose attributes were `before`.
    pub(crate) fn since(&self, node: &Node, before: Option<Attr<Disk>>) -> Change<Disk> {
        let after = self.stat(node).ok().map(|stat| attr(&node.mount, &stat));
        Change { before, after }
    }
}
