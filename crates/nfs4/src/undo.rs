//! Removal of objects that an operation created before it failed. Otherwise a repetition of the
//! request would fail with EXIST.

use comity_coherence::ChangesDirectories;
use comity_export::{Node, SeenMade, View};
use comity_vfs::{Attr, FileType, Time, Wire};

use crate::compound::Compound;

/// A new object, and its name and directory.
#[derive(Clone, Copy)]
pub(crate) struct New<'a> {
    dir: Node,
    name: &'a [u8],
    node: Node,
    /// Its size and the time of its last write.
    content: (u64, Time),
}

impl<'a> New<'a> {
    /// Returns a new object that was created as `name` in `dir` by a verb that fails if the name
    /// exists.
    pub(crate) const fn made(dir: &Node, name: &'a [u8], made: &SeenMade) -> Self {
        Self { dir: *dir, name, node: made.value.node, content: content(&made.value.attr) }
    }

    /// Returns the new object of a verb that may also find an existing one; none if the directory
    /// is unchanged.
    pub(crate) fn if_made(dir: &Node, name: &'a [u8], made: &SeenMade) -> Option<Self> {
        let (before, after) = (made.change.before.as_ref()?, made.change.after.as_ref()?);
        (before.change != after.change).then(|| Self::made(dir, name, made))
    }

    /// Removes the object, unless others have come to use it or the name belongs to another one. If
    /// the removal fails, the object stays: the client receives the operation's own failure.
    pub(crate) fn take_back(&self, compound: &Compound<'_>, view: &View<'_>) {
        if self.untouched(compound, view).is_none() {
            return;
        }
        let cleared = compound.asker(None).clear_removal(view, (&self.dir, self.name));
        let Ok(cleared) = cleared else { return };
        // The clearance may have waited for clients.
        let _ = match self.untouched(compound, view) {
            None => return,
            Some(FileType::Directory) => view.rmdir(cleared, &self.dir, self.name),
            Some(_) => view.remove(cleared, &self.dir, self.name),
        };
    }

    /// Returns the type of the object if it still has its name, no client has it open and nobody
    /// has written to it. Opens of NFSv3 clients and of programs on the server are not known. An
    /// OPEN that has just found the file and is not granted yet loses its name, as by a REMOVE.
    fn untouched(&self, compound: &Compound<'_>, view: &View<'_>) -> Option<FileType> {
        let (seen, _) = view.lookup(&self.dir, self.name).ok()?;
        let is_mine = seen.node == self.node;
        let is_file = seen.attr.file_type == FileType::Regular;
        let is_written = is_file && content(&seen.attr) != self.content;
        let is_held = compound.engine().is_held(compound.now(), &view.key(&self.node));
        (is_mine && !is_written && !is_held).then_some(seen.attr.file_type)
    }
}

/// The size of a file and the time of its last write, which differ once somebody has written to it.
const fn content(attr: &Attr<Wire>) -> (u64, Time) {
    (attr.size, attr.mtime)
}
