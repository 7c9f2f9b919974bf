//! Objects made by an operation that failed later are taken back: else the same request would
//! be EXIST.

use comity_export::{Node, SeenMade, View};
use comity_vfs::FileType;

use crate::compound::Compound;

/// A new object, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct New<'a> {
    dir: Node,
    name: &'a [u8],
    node: Node,
}

impl<'a> New<'a> {
    /// An object that was made as `name` in `dir` by a verb that takes nothing that is there
    /// already.
    pub(crate) const fn made(dir: &Node, name: &'a [u8], made: &SeenMade) -> Self {
        Self { dir: *dir, name, node: made.value.node }
    }

    /// The same of a verb that may also find the object there: then the directory is unchanged.
    pub(crate) fn if_made(dir: &Node, name: &'a [u8], made: &SeenMade) -> Option<Self> {
        let (before, after) = (made.change.before.as_ref()?, made.change.after.as_ref()?);
        (before.change() != after.change()).then(|| Self::made(dir, name, made))
    }

    /// Removes it, unless something else has come into its place. Where that fails it stays: the
    /// operation's own failure is what is told.
    pub(crate) fn take_back(&self, compound: &Compound<'_>, view: &View<'_>) {
        let Ok((seen, _)) = view.lookup(&self.dir, self.name) else { return };
        if seen.node != self.node {
            return;
        }
        let cleared = compound.asker(None).clear_name(view, (&self.dir, self.name));
        let Ok(clearance) = cleared else { return };
        let _ = match seen.attr.file_type {
            FileType::Directory => view.rmdir(clearance, &self.dir, self.name),
            _ => view.remove(clearance, &self.dir, self.name),
        };
    }
}
