//! Checks for callers that act by the grants of their keys: the rights to each object are decided
//! separately.

use std::sync::Arc;

use comity_credential::Grantee;
use comity_grants::{Glance, Holder, Operation, Scene};
use comity_vfs::{
    Access, Change, Changed, Cred, Disk, FileType, Handle, Made, Name, Result, SetAttr, Status,
};

use super::rights::Passage;
use super::{Node, View};
use crate::reasons::at_scene;

/// The rights that ACCESS reports, with the corresponding operation for directories and for other
/// objects.
const ACCESS: [(Access, Operation, Operation); 6] = [
    (Access::READ, Operation::Read, Operation::Read),
    (Access::LOOKUP, Operation::Search, Operation::Search),
    (Access::MODIFY, Operation::Create, Operation::Write),
    (Access::EXTEND, Operation::Create, Operation::Write),
    (Access::DELETE, Operation::Delete, Operation::Delete),
    (Access::EXECUTE, Operation::Search, Operation::Search),
];

impl View<'_> {
    /// Returns the key by which the caller acts, if it acts by grants or by an account. State that
    /// the caller gets rests on these and ends with them ([`crate::Plan::granted_access`]).
    #[must_use]
    pub fn grantee(&self) -> Option<Arc<Grantee>> {
        let account = self.resolved.account();
        if account.is_none() && !self.is_by_grants() {
            return None;
        }
        let (key, export) = (*self.resolved.key()?, self.resolved.export().id().0);
        let (address, user) = (self.resolved.client(), account.map(|it| it.user.as_str().into()));
        Some(Arc::new(Grantee { key, address, export, user }))
    }

    /// Returns whether the caller has no ids of its own here, and acts by the grants of its key.
    #[must_use]
    pub fn is_by_grants(&self) -> bool {
        self.resolved.holder().is_some()
    }

    /// Returns the file system and the ids of the grantor of this operation.
    ///
    /// # Errors
    /// [`Status::Acces`] if the object is visible to the key but this operation is not granted,
    /// [`Status::Stale`] if the object is hidden from it.
    #[cold]
    pub(super) fn gate_of_key<'v>(
        &'v self,
        holder: &'v Holder,
        object: &Node,
        operation: Operation,
    ) -> Result<Passage<'v>> {
        if let Some(cred) = self.pass(holder, object.handle(), operation)? {
            return Ok(Passage { fs: self.fs(), cred });
        }
        let known = self.pass(holder, object.handle(), Operation::Look)?.is_some();
        self.resolved.counters().refuse();
        Err(if known { Status::Acces } else { Status::Stale })
    }

    /// Returns the ids under which the key may do an operation on an object; `None` if it may not.
    /// Every key may look at the root of the export and look up names there that lead to its
    /// objects: it could not submit credentials otherwise.
    pub(super) fn pass<'v>(
        &'v self,
        holder: &'v Holder,
        object: &Handle,
        operation: Operation,
    ) -> Result<Option<&'v Cred<Disk>>> {
        let granted = self.at_scene(|scene| holder.pass(scene, object, operation))?;
        let at_root = || *object == self.fs().root() && !operation.changes();
        Ok(granted.or_else(|| at_root().then(|| self.cred())))
    }

    /// Calls `ask` for an object of the export.
    pub(super) fn at_scene<T>(&self, ask: impl FnOnce(&Scene<'_>) -> T) -> T {
        at_scene(self.resolved.export(), ask)
    }

    /// Returns the rights to an object that were granted to a key, in the form of ACCESS.
    ///
    /// # Errors
    /// [`Status`] if the directories above the object cannot be found.
    pub(super) fn granted_access(&self, node: &Node, is_directory: bool) -> Result<Access> {
        let Some(holder) = self.resolved.holder() else { return Ok(Access::ALL) };
        let mut granted = Access::NONE;
        for (access, of_directory, of_other) in ACCESS {
            let operation = if is_directory { of_directory } else { of_other };
            if self.pass(holder, node.handle(), operation)?.is_some() {
                granted = granted | access;
            }
        }
        Ok(granted)
    }

    /// Refuses to give an object a name in a directory if the key would gain a right to the object:
    /// rights to a directory apply to all objects below it.
    ///
    /// # Errors
    /// [`Status::Acces`]; [`Status`].
    pub(super) fn gains_nothing(&self, object: &Node, dir: &Node) -> Result<()> {
        let Some(holder) = self.resolved.holder() else { return Ok(()) };
        for operation in Operation::ALL {
            let in_dir = self.pass(holder, dir.handle(), operation)?;
            if in_dir.is_some() && self.pass(holder, object.handle(), operation)?.is_none() {
                return Err(Status::Acces);
            }
        }
        Ok(())
    }

    /// Refuses to move an object that has a name already if the key would gain a right to it.
    ///
    /// # Errors
    /// As [`View::gains_nothing`].
    pub(super) fn moving_gains_nothing(
        &self,
        at: Passage<'_>,
        (source, name): (&Node, Name<'_>),
        target: &Node,
    ) -> Result<()> {
        if self.resolved.holder().is_none() || source == target {
            return Ok(());
        }
        let found = at.fs.lookup(at.cred, source.handle(), name)?.node;
        self.met(source, name, &found.handle);
        let object = self.seen_or(&found, Status::NoEnt)?.node;
        self.gains_nothing(&object, target)?;
        match found.attr.file_type {
            FileType::Directory => self.gains_nothing_below(&object, target),
            _ => Ok(()),
        }
    }

    /// Refuses to move a directory if the key would gain a right to an object in it.
    fn gains_nothing_below(&self, dir: &Node, target: &Node) -> Result<()> {
        let Some(holder) = self.resolved.holder() else { return Ok(()) };
        let passes = |node: &Node, operation| {
            self.at_scene(|scene| holder.passes_below(scene, node.handle(), operation))
        };
        for operation in Operation::ALL {
            if passes(target, operation)? && !passes(dir, operation)? {
                return Err(Status::Acces);
            }
        }
        Ok(())
    }

    /// Refuses to make an object in a directory if the object would be hidden from the key
    /// afterwards: the reply would have to be that of an existing name.
    ///
    /// # Errors
    /// [`Status::Acces`]; [`Status`].
    pub(super) fn may_know_what_it_makes(&self, dir: &Node) -> Result<()> {
        let Some(holder) = self.resolved.holder() else { return Ok(()) };
        if self.sees_all_below(dir)? {
            return Ok(());
        }
        match self.at_scene(|scene| holder.knows_below(scene, dir.handle()))? {
            true => Ok(()),
            false => Err(Status::Acces),
        }
    }

    /// Returns whether the caller acts by a key to which each object in a directory is visible,
    /// because of its grants to the directory.
    ///
    /// # Errors
    /// [`Status`].
    pub(super) fn sees_all_below(&self, dir: &Node) -> Result<bool> {
        let Some(holder) = self.resolved.holder() else { return Ok(false) };
        self.at_scene(|scene| holder.sees_all_below(scene, dir.handle()))
    }

    /// Refuses to replace an object by a rename if the key may not remove names from the target
    /// directory.
    ///
    /// # Errors
    /// [`Status::Acces`]; [`Status`].
    pub(super) fn moving_replaces_nothing(
        &self,
        at: Passage<'_>,
        source: &Node,
        (target, name): (&Node, Name<'_>),
    ) -> Result<()> {
        if self.resolved.holder().is_none() || source == target {
            return Ok(());
        }
        match at.fs.lookup(at.cred, target.handle(), name) {
            Ok(_) => self.gate(target, Operation::Delete).map(drop),
            Err(Status::NoEnt) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Changes the size of an existing file, as its CREATE requests. That needs the right to write
    /// the file.
    ///
    /// # Errors
    /// [`Status::Exist`] if the name belongs to another type of object, or to an object that is
    /// hidden from the key; [`Status`].
    pub(super) fn empty_found(
        &self,
        at: Passage<'_>,
        dir: &Node,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let found = at.fs.lookup(at.cred, dir.handle(), name)?;
        self.met(dir, name, &found.node.handle);
        let file = self.seen_or(&found.node, Status::Exist)?.node;
        if found.node.attr.file_type != FileType::Regular {
            return Err(Status::Exist);
        }
        let writing = self.gate(&file, Operation::Write)?;
        let size = SetAttr { size: set.size, ..SetAttr::default() };
        let emptied = at.fs.setattr(writing.cred, file.handle(), &size, None)?;
        let attr = emptied.after.map_or_else(|| at.fs.getattr(file.handle()), Ok)?;
        let value = comity_vfs::Node { handle: *file.handle(), attr };
        Ok(Changed { value, change: Change { before: found.dir, after: found.dir } })
    }

    /// Remembers the name by which a key found an object, so that the directories above the object
    /// can be found later.
    #[inline]
    pub(super) fn met(&self, dir: &Node, name: Name<'_>, object: &Handle) {
        if self.resolved.is_by_right() {
            self.remember_name(dir, name, object);
        }
    }

    /// Returns the state of remembered places before a look-up, if the caller acts by a key. It is
    /// read first, so that a concurrent move is noticed.
    #[inline]
    pub(super) fn glance(&self) -> Option<Glance> {
        if self.resolved.is_by_right() { self.glance_of_key() } else { None }
    }

    #[cold]
    fn glance_of_key(&self) -> Option<Glance> {
        let grants = self.resolved.holder()?.grants();
        Some(grants.ancestry().glance(grants.now()))
    }

    /// Remembers the name by which a look-up that began at `before` found an object.
    #[inline]
    pub(super) fn found(
        &self,
        before: Option<Glance>,
        (dir, name): (&Node, Name<'_>),
        node: &comity_vfs::Node<Disk>,
    ) {
        if let Some(before) = before {
            self.remember_found(before, (dir, name), node);
        }
    }

    #[cold]
    fn remember_found(
        &self,
        before: Glance,
        (dir, name): (&Node, Name<'_>),
        node: &comity_vfs::Node<Disk>,
    ) {
        let is_single = node.attr.file_type != FileType::Directory && node.attr.links == 1;
        match self.resolved.holder() {
            Some(holder) if is_single => {
                let place = (dir.handle(), name.bytes());
                self.at_scene(|scene| holder.found_single(scene, before, &node.handle, place));
            }
            _ => self.met(dir, name, &node.handle),
        }
    }

    #[cold]
    fn remember_name(&self, dir: &Node, name: Name<'_>, object: &Handle) {
        if let Some(holder) = self.resolved.holder() {
            let file = self.resolved.export().key(object);
            holder.grants().ancestry().met(&file, dir.handle(), name.bytes());
        }
    }

    /// Does a move between two directories, after which all cached decisions are invalid.
    pub(super) fn moving<T>(&self, between: (&Node, &Node), change: impl FnOnce() -> T) -> T {
        let grants = self.plan.grants().filter(|_| between.0 != between.1);
        let moved = || grants.iter().for_each(|grants| grants.ancestry().moved());
        moved();
        let outcome = change();
        moved();
        outcome
    }
}
