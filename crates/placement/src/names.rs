//! The names by which files were made or renamed last, so that their paths can be told.

use std::ops::ControlFlow;

use comity_vfs::{Cred, FileType, Fs, Handle, Listed, Name, Result, Status};
use quick_cache::sync::Cache;

use crate::limits::{ENTRIES_SEARCHED_MAX, PATH_BYTES_MAX, RECORDS_MAX};

/// A directory and a name in it.
type NamedIn = (Handle, Box<[u8]>);

/// The names of files and directories as far as they are known.
pub(crate) struct FileNames(Cache<Handle, NamedIn>);

impl FileNames {
    pub(crate) fn new() -> Self {
        Self(Cache::new(RECORDS_MAX))
    }

    pub(crate) fn note(&self, node: &Handle, (dir, name): (&Handle, Name<'_>)) {
        self.0.insert(*node, (*dir, name.bytes().into()));
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
        let found = directories.iter().find_map(|dir| Some((*dir, search(fs, dir, node)?)));
        let found = found.ok_or(Status::NoEnt)?;
        self.0.insert(*node, found.clone());
        Ok(found)
    }
}

fn is_named(fs: &dyn Fs, node: &Handle, (dir, name): &NamedIn) -> bool {
    let Ok(name) = Name::new(name) else { return false };
    fs.lookup(&Cred::root(), dir, name).is_ok_and(|entry| entry.node.handle == *node)
}

/// Searches a directory for a name of an object; a huge directory is not searched to its end.
fn search(fs: &dyn Fs, dir: &Handle, node: &Handle) -> Option<Box<[u8]>> {
    let fileid = fs.getattr(node).ok()?.fileid;
    let (mut cookie, mut seen) = (0, 0);
    loop {
        let (mut found, before) = (None, seen);
        let listed = fs.readdir(&Cred::root(), dir, cookie, Listed::Names, &mut |entry| {
            (seen, cookie) = (seen + 1, entry.cookie);
            if entry.fileid == fileid {
                found = Some(entry.name.bytes().into());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        listed.ok()?;
        match found {
            Some(name) if is_named(fs, node, &(*dir, Box::clone(&name))) => return Some(name),
            Some(_) => {}
            None if seen == before => return None,
            None => {}
        }
        if seen >= ENTRIES_SEARCHED_MAX {
            return None;
        }
    }
}
