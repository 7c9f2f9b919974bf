//! Objects that a key has made: the key is the grantor of their rights.

use comity_grants::FetchError;
use comity_vfs::{Changed, Create, Disk, Handle, Made, Name, Node as VfsNode, Result, Status};

use super::name::{MADE, entry_name};
use super::rights::{DirectoryChange, Passage};
use super::{DirectoryClearance, Node, SeenMade, View};

/// Marks an object as made, not found.
pub(super) fn new(made: Made<Disk>) -> (Made<Disk>, bool) {
    (made, true)
}

impl View<'_> {
    /// Makes an object in a directory, or finds an existing one.
    pub(super) fn make(
        &self,
        cleared: &DirectoryClearance<'_>,
        dir: &Node,
        name: &[u8],
        make: impl FnOnce(Passage<'_>, Name<'_>) -> Result<(Made<Disk>, bool)>,
    ) -> Result<SeenMade> {
        let at = self.before_change(DirectoryChange::Add(dir))?;
        self.may_know_what_it_makes(dir)?;
        let name = entry_name(name, MADE)?;
        let before = self.glance();
        let make = || {
            let (made, is_new) = make(at, name).map_err(|why| self.told(at, dir, name, why))?;
            Ok(Changed { value: (made.value, is_new), change: made.change })
        };
        let object = |made: &Changed<(VfsNode<Disk>, bool), Disk>| {
            let (VfsNode { handle, attr }, _) = made.value;
            (handle, attr)
        };
        let Changed { value: (value, is_new), change } =
            self.tell_name(cleared, (dir, name), make, object)?;
        self.found(before, (dir, name), &value);
        if is_new {
            self.created(&value.handle);
        }
        // A hidden object that appeared after the check was found, not made.
        let value = self.seen_or(&value, Status::Exist)?;
        Ok(Changed { value, change: self.change_out(change) })
    }

    /// Makes a regular file or finds it, and returns whether it was made if the caller acts by a
    /// key. The file system has to decide that: a file that another client makes at the same time
    /// does not belong to the caller.
    pub(super) fn create_new_or_found(
        &self,
        at: Passage<'_>,
        dir: &Node,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<(Made<Disk>, bool)> {
        let create = |how: &Create<Disk>| at.fs.create(at.cred, dir.handle(), name, how);
        match how {
            _ if self.resolved.holder().is_none() => create(how).map(|made| (made, false)),
            Create::Guarded(_) => create(how).map(new),
            Create::Unchecked(set) => match create(&Create::Guarded(*set)) {
                Err(Status::Exist) if set.size.is_some() => {
                    self.empty_found(at, dir, name, set).map(|found| (found, false))
                }
                Err(Status::Exist) => create(how).map(|found| (found, false)),
                made => made.map(new),
            },
            // A file with the same verifier is a retry, since nobody else knows the verifier.
            Create::Exclusive(_) => {
                let is_there = at.fs.lookup(at.cred, dir.handle(), name).is_ok();
                create(how).map(|made| (made, !is_there))
            }
        }
    }

    /// Remembers the caller as the creator of an object, if it acts by the grants of its key.
    #[inline]
    pub(super) fn created(&self, object: &Handle) {
        if self.resolved.is_by_right() {
            self.remember_creator(object);
        }
    }

    #[cold]
    fn remember_creator(&self, object: &Handle) {
        if let Some(holder) = self.resolved.holder() {
            holder.grants().created(object, holder.key());
        }
    }

    /// The credential of the caller for an object that it has made, signed now.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn fetch(&self, node: &Node) -> std::result::Result<String, FetchError> {
        let holder = self.resolved.holder().ok_or(FetchError::NotCreator)?;
        holder.grants().fetch(node.handle(), holder.key())
    }
}
