//! Open files whose last name is removed.
//!
//! A program may continue to use a file that it has removed. In an `Fs` the handle of such a file
//! may become stale, so an open file keeps a hidden name until its last close, as in other NFS
//! clients. Other clients see that name. If the layer below keeps open files itself
//! ([`OpenFiles::keeps_removed`]), no name is hidden.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use comity_vfs::{Attr, Cred, Disk, FileType, Handle, Name, Node, OpenFiles};
use rustix::io::{self, Errno};

use super::Mounted;
use crate::callers::Requester;

/// The prefix of hidden names.
const HIDDEN: &str = ".comity-removed-";

/// Most attempts to find a free hidden name.
const TRIES: usize = 8;

/// The hidden names of open files.
#[derive(Debug, Default)]
pub(super) struct Removed {
    names: Mutex<HashMap<Handle, Vec<Hidden>>>,
    next: AtomicU64,
    random: RandomState,
}

/// A hidden name, with the credential for its removal.
#[derive(Debug)]
struct Hidden {
    dir: Handle,
    name: String,
    cred: Cred<Disk>,
}

impl Removed {
    fn new_name(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{HIDDEN}{:016x}", self.random.hash_one(number))
    }

    fn add(&self, node: Handle, hidden: Hidden) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.entry(node).or_default().push(hidden);
    }

    /// Returns whether a file has a hidden name.
    pub(super) fn has(&self, node: &Handle) -> bool {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).contains_key(node)
    }

    fn take(&self, node: &Handle) -> Vec<Hidden> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(node).unwrap_or_default()
    }
}

impl Mounted {
    /// Renames a name to a hidden one instead of removing it, if its file is open and has no other
    /// name. Returns whether it did.
    pub(super) fn hide_removed(
        &self,
        who: Requester,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
    ) -> io::Result<bool> {
        let Some(node) = self.open_object(who, cred, (dir, name))? else { return Ok(false) };
        for _ in 0..TRIES {
            let hidden = self.removed.new_name();
            let target = super::names::name(hidden.as_bytes())?;
            if self.verb(who, || self.fs.lookup(cred, dir, target)) != Err(Errno::NOENT) {
                continue;
            }
            self.verb(who, || self.fs.rename(cred, (dir, name), (dir, target)))?;
            self.hidden(node.handle, Hidden { dir: *dir, name: hidden, cred: cred.clone() });
            return Ok(true);
        }
        Ok(false)
    }

    /// Gives an open file that a rename will replace a hidden name, if it has no other name. If
    /// that fails, the file is still replaced.
    pub(super) fn keep_replaced(
        &self,
        who: Requester,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> io::Result<()> {
        let Some(node) = self.open_object(who, cred, target)? else { return Ok(()) };
        let same = self.fs.lookup(cred, source.0, source.1).map(|entry| entry.node.handle);
        if same == Ok(node.handle) {
            return Ok(());
        }
        let (hidden, dir) = (self.removed.new_name(), *target.0);
        let name = super::names::name(hidden.as_bytes())?;
        if self.verb(who, || self.fs.link(cred, &node.handle, &dir, name)).is_ok() {
            self.hidden(node.handle, Hidden { dir, name: hidden, cred: cred.clone() });
        }
        Ok(())
    }

    /// Notes the hidden name of a file until its last close, which may have come meanwhile.
    fn hidden(&self, node: Handle, hidden: Hidden) {
        self.removed.add(node, hidden);
        if self.inodes.opens(&node) == 0 {
            self.remove_hidden(&node);
        }
    }

    /// Returns the object of a name, if it is open and this is its last name.
    fn open_object(
        &self,
        who: Requester,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
    ) -> io::Result<Option<Node<Disk>>> {
        if self.open_files().is_some_and(OpenFiles::keeps_removed) || self.opens.is_empty() {
            return Ok(None);
        }
        let Ok(found) = self.verb(who, || self.fs.lookup(cred, dir, name)) else { return Ok(None) };
        let loses = |attr: &Attr<Disk>| attr.file_type != FileType::Directory && attr.links <= 1;
        let is_open = self.inodes.opens(&found.node.handle) > 0;
        Ok(Some(found.node).filter(|node| is_open && loses(&node.attr)))
    }

    /// Removes the hidden names of a file after its last close.
    pub(super) fn remove_hidden(&self, node: &Handle) {
        for Hidden { dir, name, cred } in self.removed.take(node) {
            let removed = Name::new(name.as_bytes())
                .and_then(|hidden| self.fs.remove(&cred, &dir, hidden).map(|_| ()));
            if let Err(status) = removed {
                tracing::warn!(%name, %status, "cannot remove the hidden name of a removed file");
            }
        }
    }
}
