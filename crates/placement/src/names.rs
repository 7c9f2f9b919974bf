//! The names by which files were made or renamed last, so that their paths can be told.

use std::ops::ControlFlow;

use comity_vfs::{Cred, FileType, Fs, Handle, Listed, Name, Result, Status};
use quick_cache::sync::Cache;

use crate::limits::{CHECK_ENTRIES_MAX, ENTRIES_SEARCHED_MAX, PATH_BYTES_MAX, RECORDS_MAX};

/// A directory and a name in it.
pub(crate) type NamedIn = (Handle, Box<[u8]>);

/// The names of files and directories as far as they are known.
pub(crate) struct FileNames(Cache<Handle, NamedIn>);

impl FileNames {
    pub(crate) fn new() -> Self {
        Self(Cache::new(RECORDS_MAX))
    }

    pub(crate) fn note(&self, node: &Handle, (dir, name): (&Handle, Name<'_>)) {
        self.0.insert(*node, (*dir, name.bytes().into()));
    }

    pub(crate) fn keep(&self, node: &Handle, named: NamedIn) {
        self.0.insert(*node, named);
    }

    pub(crate) fn forget(&self, node: &Handle) {
        self.0.remove(node);
    }

    /// Returns a path of an object below the top of its file system, without a slash at the start.
    ///
    /// # Errors
    /// [`Status::NoEnt`]: it is not found; [`Status::NameTooLong`]; [`Status`].
    pub(crate) fn path(&self, fs: &dyn Fs, node: &Handle) -> Result<Vec<u8>> {
        let (top, mut node) = (fs.root(), *node);
        let (mut names, mut length) = (Vec::new(), 0);
        while node != top {
            let (dir, name) = self.link(fs, &node)?;
            if dir == node {
                return Err(Status::NoEnt);
            }
            length += name.len() + 1;
            if length > PATH_BYTES_MAX {
                return Err(Status::NameTooLong);
            }
            names.push(name);
            node = dir;
        }
        names.reverse();
        Ok(names.join(&b'/'))
    }

    /// Returns a name of an object, which it has now.
    fn link(&self, fs: &dyn Fs, node: &Handle) -> Result<NamedIn> {
        if let Some(known) = self.0.get(node).filter(|link| is_named(fs, node, link)) {
            return Ok(known);
        }
        let directories = match fs.getattr(node)?.file_type {
            FileType::Directory => vec![fs.parent(&Cred::root(), node)?.handle],
            _ => fs.directories_of(node)?,
        };
        directories.iter().find_map(|dir| self.search(fs, dir, node)).ok_or(Status::NoEnt)
    }

    /// Searches a directory for a name of an object; a huge directory is not searched to its end.
    /// The names of others that it passes are kept, as these may be searched for next.
    fn search(&self, fs: &dyn Fs, dir: &Handle, node: &Handle) -> Option<NamedIn> {
        let (mut next, mut seen) = (Some(0), 0);
        while let Some(after) = next.filter(|_| seen < ENTRIES_SEARCHED_MAX) {
            let page = read_page(fs, dir, after).ok()?;
            (next, seen) = (page.next, seen + page.seen);
            for (other, name) in page.entries {
                self.0.insert(other, (*dir, name));
            }
            if let Some(found) = self.0.get(node).filter(|link| is_named(fs, node, link)) {
                return Some(found);
            }
        }
        None
    }
}

fn is_named(fs: &dyn Fs, node: &Handle, (dir, name): &NamedIn) -> bool {
    let Ok(name) = Name::new(name) else { return false };
    fs.lookup(&Cred::root(), dir, name).is_ok_and(|entry| entry.node.handle == *node)
}

/// A page of a directory.
struct EntryPage {
    entries: Vec<(Handle, Box<[u8]>)>,
    /// The cookie at which the next page begins; `None` if this is the last one.
    next: Option<u64>,
    seen: usize,
}

fn read_page(fs: &dyn Fs, dir: &Handle, after: u64) -> Result<EntryPage> {
    let mut page = EntryPage { entries: Vec::new(), next: None, seen: 0 };
    fs.readdir(&Cred::root(), dir, after, Listed::Nodes, &mut |entry| {
        page.seen += 1;
        page.next = Some(entry.cookie);
        if let Some(node) = entry.node {
            page.entries.push((node.handle, entry.name.bytes().into()));
        }
        match page.seen < CHECK_ENTRIES_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(page)
}
