//! The files of a directory, page by page, so that other requests have their turn in between.

use std::ops::ControlFlow;
use std::time::Instant;

use comity_vfs::{Cred, Disk, FileType, Handle, Listed, Node, Result};

use crate::limits::{CHECK_ENTRIES_MAX, CHECK_TIME_MAX};
use crate::placed::Placed;

/// An entry of a directory.
struct SeenEntry {
    name: Box<[u8]>,
    cookie: u64,
    node: Option<Node<Disk>>,
}

/// A page of a directory whose regular files were visited.
pub(crate) struct VisitedPage {
    /// The directories on the page, with their names.
    pub(crate) directories: Vec<(Box<[u8]>, Handle)>,
    /// The cookie at which the next page begins; `None` if this is the last one.
    pub(crate) next: Option<u64>,
}

impl Placed {
    /// Visits the regular files of a page of a directory.
    pub(crate) fn visit_page(
        &self,
        directory: &Handle,
        after: u64,
        mut visit: impl FnMut(Box<[u8]>, &Node<Disk>) -> Result<()>,
    ) -> Result<VisitedPage> {
        let begun = Instant::now();
        let entries = self.entries(directory, after)?;
        let is_full = entries.len() == CHECK_ENTRIES_MAX;
        let mut directories = Vec::new();
        let mut left = entries.into_iter();
        let mut last = after;
        for SeenEntry { name, cookie, node } in left.by_ref() {
            last = cookie;
            match node {
                Some(node) if node.attr.file_type == FileType::Directory => {
                    directories.push((name, node.handle));
                }
                Some(node) if node.attr.file_type == FileType::Regular => visit(name, &node)?,
                _ => {}
            }
            if begun.elapsed() > CHECK_TIME_MAX {
                break;
            }
        }
        let next = (is_full || left.len() > 0).then_some(last);
        Ok(VisitedPage { directories, next })
    }

    fn entries(&self, directory: &Handle, after: u64) -> Result<Vec<SeenEntry>> {
        let mut entries = Vec::new();
        self.below.readdir(&Cred::root(), directory, after, Listed::Nodes, &mut |entry| {
            let name = entry.name.bytes().into();
            entries.push(SeenEntry { name, cookie: entry.cookie, node: entry.node });
            match entries.len() < CHECK_ENTRIES_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(entries)
    }
}
