//! Removal of objects that an operation created before it failed. Otherwise a repetition of the
//! request would fail with EXIST.

use comity_coherence::ChangesDirectories;
use comity_export::{Node, SeenMade, View};
use comity_vfs::FileType;

use crate::compound::Compound;

/// A new object, and its name and directory.
#[derive(Clone, Copy)]
pub(crate) struct New<'a> {
    dir: Node,
    name: &'a [u8],
    node: Node,
}

impl<'a> New<'a> {
    /// Returns a new object that was created as `name` in `dir` by a verb that fails if the name
    /// exists.
    pub(crate) const fn made(dir: &Node, name: &'a [u8], made: &SeenMade) -> Self {
        Self { dir: *dir, name, node: made.value.node }
    }

    /// Returns the new object of a verb that may also find an existing one; none if the directory
    /// is unchanged.
    pub(crate) fn if_made(dir: &Node, name: &'a [u8], made: &SeenMade) -> Option<Self> {
        let (before, after) = (made.change.before.as_ref()?, made.change.after.as_ref()?);
        (before.change != after.change).then(|| Self::made(dir, name, made))
    }

    /// Removes the object, unless the name now belongs to another one. If the removal fails, the
    /// object stays: the client receives the operation's own failure.
    pub(crate) fn take_back(&self, compound: &Compound<'_>, view: &View<'_>) {
        let Ok((seen, _)) = view.lookup(&self.dir, self.name) else { return };
        if seen.node != self.node {
            return;
        }
        let cleared = compound.asker(None).clear_removal(view, (&self.dir, self.name));
        let Ok(cleared) = cleared else { return };
        let _ = match seen.attr.file_type {
            FileType::Directory => view.rmdir(cleared, &self.dir, self.name),
            _ => view.remove(cleared, &self.dir, self.name),
        };
    }
}
