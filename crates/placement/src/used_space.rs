//! The space that files use on data servers, as far as it is known.

use comity_vfs::{Attr, Change, Disk, FileType, Handle, Node};
use quick_cache::sync::Cache;

use crate::limits::RECORDS_MAX;

/// The least used space of a file with bytes: programs assume that a file without used space has
/// only holes.
const USED_MIN: u64 = 512;

/// The bytes that files use on all their data servers together. They are known from a change of the
/// size or a commit until the next write.
pub(crate) struct UsedSpace(Cache<Handle, u64>);

impl UsedSpace {
    pub(crate) fn new() -> Self {
        Self(Cache::new(RECORDS_MAX))
    }

    pub(crate) fn note(&self, file: &Handle, bytes: u64) {
        self.0.insert(*file, bytes);
    }

    pub(crate) fn forget(&self, file: &Handle) {
        self.0.remove(file);
    }

    /// The attributes of an object as clients see them. The file system below has no data of a
    /// placed file; if its used space is unknown, the file counts as one without holes.
    pub(crate) fn shown(&self, file: &Handle, attr: Attr<Disk>) -> Attr<Disk> {
        if attr.file_type != FileType::Regular || attr.used > 0 || attr.size == 0 {
            return attr;
        }
        let used = self.0.get(file).map_or(attr.size, |used| used.max(USED_MIN));
        Attr { used, ..attr }
    }

    /// The same for a change of an object.
    pub(crate) fn shown_change(&self, file: &Handle, change: Change<Disk>) -> Change<Disk> {
        let after = change.after.map(|attr| self.shown(file, attr));
        Change { after, ..change }
    }

    /// The same for an object with its handle.
    pub(crate) fn shown_node(&self, node: Node<Disk>) -> Node<Disk> {
        Node { attr: self.shown(&node.handle, node.attr), ..node }
    }
}
