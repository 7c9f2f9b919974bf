//! A view: an export as one caller sees it during one request.

mod change_mask;
mod clearance;
mod cloaking;
mod creation;
mod crossing;
mod directory_delegation;
mod entry;
mod grant_xattr;
mod key;
mod key_caller;
mod layout;
mod listing;
mod name;
mod name_change;
mod node;
mod owner;
mod rights;
mod telling;
mod xattr;

use std::sync::Arc;

use comity_cloak::Verdict;
use comity_grants::Operation;
use comity_idmap::Unmapped;
use comity_placement::Passed;
use comity_vfs::{
    Access, Attr, Change, Changed, Create, Cred, Disk, FileType, Fs, Properties, Read, ReadInto,
    Result, SetAttr, Space, Special, Status, Target, Time, Wire, Written,
};

pub use self::clearance::{ChangeUnderWay, ChangesBy, Clearance, DirectoryClearance};
use self::cloaking::may_add;
use self::creation::new;
pub use self::listing::{ListingPart, VisitSeen};
use self::name::{MADE, REMOVED, REMOVED_AS_DIR, RENAMED, entry_name, plain_name};
pub use self::name_change::{ChangedPlace, DirectoryHolders, NameChange, Turns};
pub use self::node::{Node, Outside, Seen};
use self::rights::DirectoryChange;
use crate::resolved_caller::ResolvedCaller;
use crate::{Barrier, ExportId, Plan, Rules, SealedHandle};

/// The way in which a request names its export and its first object.
#[derive(Debug, Clone, Copy)]
pub enum Door<'a> {
    /// A handle from the wire.
    Handle(&'a [u8]),
    /// The path of an export or of a directory below it.
    Path(&'a [u8]),
    /// The path in a MOUNT. Linux mounts NFSv3 in clear and uses TLS for the rest, so an export
    /// that may not be used by the channel of the call shows its top directory, and nothing below.
    Mount(&'a [u8]),
}

/// An export as one caller sees it during one request.
#[derive(Clone)]
pub struct View<'a> {
    plan: &'a Plan,
    resolved: Arc<ResolvedCaller>,
    /// The fence that a call by a layout has passed. It is held until the request is done.
    #[expect(dead_code, reason = "it is held and not read")]
    passed: Option<Arc<Passed>>,
}

/// A new object, and the change of its directory.
pub type SeenMade = Changed<Seen, Wire>;

impl<'a> View<'a> {
    pub(crate) const fn of(plan: &'a Plan, resolved: Arc<ResolvedCaller>) -> Self {
        Self { plan, resolved, passed: None }
    }

    /// Admits another handle of the same request.
    ///
    /// # Errors
    /// [`Status::BadHandle`]; [`Status::XDev`] if it belongs to another export.
    pub fn admit(&self, sealed: &[u8]) -> Result<Node> {
        let (id, handle) = self.plan.key().open(sealed)?;
        if id == self.export_id() { self.let_in(Outside::new(handle)) } else { Err(Status::XDev) }
    }

    /// Returns a node's handle for the wire.
    #[must_use]
    pub fn seal(&self, node: &Node) -> SealedHandle {
        self.plan.key().seal(self.export_id(), node.handle())
    }

    /// Returns the number of the export.
    #[must_use]
    pub fn export_id(&self) -> ExportId {
        self.resolved.export().id()
    }

    /// Returns the rules that apply to the caller at this export.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        self.resolved.rules()
    }

    /// The properties of the file system.
    ///
    /// # Errors
    /// [`Status`], as for every verb below: see the verb of this name of [`Fs`].
    pub fn properties(&self, node: &Node) -> Result<Properties> {
        self.gate(node, Operation::Look)?.fs.properties(node.handle())
    }

    /// See [`Fs::statfs`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn statfs(&self, node: &Node) -> Result<Space> {
        let at = self.gate(node, Operation::Look)?;
        at.fs.statfs(at.cred, node.handle())
    }

    /// See [`Fs::getattr`].
    ///
    /// # Errors
    /// [`Status`].
    #[inline(always)]
    pub fn getattr(&self, node: &Node) -> Result<Attr<Wire>> {
        let at = self.gate(node, Operation::Look)?;
        Ok(self.attr_out(&at.fs.getattr(node.handle())?))
    }

    /// See [`Fs::setattr`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn setattr(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        set: &SetAttr<Wire>,
        guard: Option<Time>,
    ) -> Result<Change<Wire>> {
        let sets_size_only = SetAttr { size: set.size, ..SetAttr::default() } == *set;
        let change = match set.size {
            Some(_) if sets_size_only => DirectoryChange::Size(node),
            Some(_) => DirectoryChange::SizeAndAttributes(node),
            None => DirectoryChange::Attributes(node),
        };
        let at = self.before_change(change)?;
        let (set, guard) = (self.set_in(set)?, self.guarded(node, guard)?);
        self.tell_attributes(cleared, node, || at.fs.setattr(at.cred, node.handle(), &set, guard))
    }

    /// See [`Fs::access`]; rights to change anything are missing if the export is read-only.
    ///
    /// # Errors
    /// [`Status`].
    pub fn access(&self, node: &Node, wanted: Access) -> Result<(Access, Attr<Wire>)> {
        let at = self.gate(node, Operation::Look)?;
        let (granted, attr) = at.fs.access(at.cred, node.handle(), wanted)?;
        let is_directory = attr.file_type == FileType::Directory;
        let granted = granted & self.grantable() & self.granted_access(node, is_directory)?;
        Ok((granted, self.attr_out(&attr)))
    }

    /// Finds a name, which may be `.` or `..`; also returns the directory's attributes.
    ///
    /// # Errors
    /// [`Status`].
    pub fn lookup(&self, dir: &Node, name: &[u8]) -> Result<(Seen, Option<Attr<Wire>>)> {
        let (found, dir) = match name {
            b"." | b".." => (self.dots(dir, name)?, None),
            _ => {
                let (at, name) = (self.gate(dir, Operation::Search)?, plain_name(name)?);
                let before = self.glance();
                let entry = at.fs.lookup(at.cred, dir.handle(), name)?;
                self.found(before, (dir, name), &entry.node);
                (self.seen_or(&entry.node, Status::NoEnt)?, entry.dir)
            }
        };
        Ok((found, dir.map(|attr| self.attr_out(&attr))))
    }

    /// See [`Fs::readlink`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn readlink(&self, node: &Node) -> Result<(Target, Attr<Wire>)> {
        let at = self.gate(node, Operation::Look)?;
        let (target, attr) = at.fs.readlink(at.cred, node.handle())?;
        Ok((target, self.attr_out(&attr)))
    }

    /// See [`Fs::read`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn read(
        &self,
        node: &Node,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Wire>> {
        let at = self.gate(node, Operation::Read)?;
        // The attributes are read by reference and written in place: each copy of them costs a READ
        // a hundredth of its instructions.
        match at.fs.read(at.cred, node.handle(), offset, count, into) {
            Ok(Read { data, eof, attr: Some(ref attr) }) => {
                Ok(Read { data, eof, attr: Some(self.attr_out(attr)) })
            }
            Ok(Read { data, eof, attr: None }) => Ok(Read { data, eof, attr: None }),
            Err(status) => Err(status),
        }
    }

    /// See [`Fs::write`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn write(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Wire>> {
        let at = self.gate(node, Operation::Write)?;
        let written = at.fs.write(at.cred, node.handle(), offset, data);
        let Written { value, change } = self.noting(cleared, node, written)?;
        Ok(Changed { value, change: self.change_out(change) })
    }

    /// See [`Fs::write_opened`], which has the same errors.
    pub fn write_opened(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        let at = self.gate(node, Operation::Write)?;
        let written = at.fs.write_opened(at.cred, node.handle(), offset, data);
        self.noting(cleared, node, written)
    }

    /// See [`Fs::create`]. An exclusive verifier is combined with the client's address, because two
    /// machines may choose the same one (Linux takes its clock's ticks and a process number).
    ///
    /// # Errors
    /// [`Status`].
    pub fn create(
        &self,
        cleared: DirectoryClearance<'_>,
        dir: &Node,
        name: &[u8],
        how: &Create<Wire>,
    ) -> Result<SeenMade> {
        let how = match how {
            Create::Unchecked(set) => Create::Unchecked(self.set_in(set)?),
            Create::Guarded(set) => Create::Guarded(self.set_in(set)?),
            Create::Exclusive(verifier) => {
                Create::Exclusive(self.plan.key().verifier_of(self.resolved.client(), *verifier))
            }
        };
        self.make(&cleared, dir, name, |at, name| {
            if self.may_be_hidden(dir)? && self.is_hidden(at, dir, name)? {
                return Err(Status::Exist);
            }
            self.create_new_or_found(at, dir, name, &how)
        })
    }

    /// See [`Fs::mkdir`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn mkdir(
        &self,
        cleared: DirectoryClearance<'_>,
        dir: &Node,
        name: &[u8],
        set: &SetAttr<Wire>,
    ) -> Result<SeenMade> {
        let set = self.set_in(set)?;
        self.make(&cleared, dir, name, |at, name| {
            at.fs.mkdir(at.cred, dir.handle(), name, &set).map(new)
        })
    }

    /// See [`Fs::symlink`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn symlink(
        &self,
        cleared: DirectoryClearance<'_>,
        dir: &Node,
        name: &[u8],
        target: &[u8],
        set: &SetAttr<Wire>,
    ) -> Result<SeenMade> {
        let set = self.set_in(set)?;
        self.make(&cleared, dir, name, |at, name| {
            at.fs.symlink(at.cred, dir.handle(), name, target, &set).map(new)
        })
    }

    /// See [`Fs::mknod`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn mknod(
        &self,
        cleared: DirectoryClearance<'_>,
        dir: &Node,
        name: &[u8],
        special: Special,
        set: &SetAttr<Wire>,
    ) -> Result<SeenMade> {
        let set = self.set_in(set)?;
        self.make(&cleared, dir, name, |at, name| {
            at.fs.mknod(at.cred, dir.handle(), name, special, &set).map(new)
        })
    }

    /// See [`Fs::remove`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn remove(
        &self,
        cleared: DirectoryClearance<'_>,
        dir: &Node,
        name: &[u8],
    ) -> Result<Change<Wire>> {
        let at = self.before_change(DirectoryChange::Remove(dir))?;
        let name = entry_name(name, REMOVED)?;
        self.not_hidden(at, dir, name)?;
        self.tell_removal(&cleared, (dir, name), || at.fs.remove(at.cred, dir.handle(), name))
    }

    /// See [`Fs::rmdir`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn rmdir(
        &self,
        cleared: DirectoryClearance<'_>,
        dir: &Node,
        name: &[u8],
    ) -> Result<Change<Wire>> {
        let at = self.before_change(DirectoryChange::Remove(dir))?;
        let name = entry_name(name, REMOVED_AS_DIR)?;
        self.not_hidden(at, dir, name)?;
        self.tell_removal(&cleared, (dir, name), || at.fs.rmdir(at.cred, dir.handle(), name))
    }

    /// See [`Fs::rename`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn rename(
        &self,
        cleared: DirectoryClearance<'_>,
        source: (&Node, &[u8]),
        target: (&Node, &[u8]),
    ) -> Result<(Change<Wire>, Change<Wire>)> {
        let at = self.before_change(DirectoryChange::Move(source.0, target.0))?;
        let from = (source.0.handle(), entry_name(source.1, RENAMED)?);
        let to = (target.0.handle(), entry_name(target.1, RENAMED)?);
        // Both directories are checked before one error is chosen: that of a directory that cannot
        // be searched comes first, whatever the other one contains.
        let (gone, onto) =
            (self.is_hidden(at, source.0, from.1)?, self.is_hidden(at, target.0, to.1)?);
        if gone {
            return Err(Status::NoEnt);
        }
        if onto && may_add(at, target.0)? {
            // If there is no source, the target does not matter.
            at.fs.lookup(at.cred, from.0, from.1)?;
            return Err(Status::Exist);
        }
        self.moving_gains_nothing(at, (source.0, from.1), target.0)?;
        self.moving_replaces_nothing(at, source.0, (target.0, to.1))?;
        let rename = || at.fs.rename(at.cred, from, to);
        let rename = || self.moving((source.0, target.0), rename);
        self.tell_move(&cleared, (from, to), rename)
    }

    /// See [`Fs::link`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn link(
        &self,
        cleared: DirectoryClearance<'_>,
        node: &Node,
        dir: &Node,
        name: &[u8],
    ) -> Result<Changed<Attr<Wire>, Wire>> {
        let at = self.before_change(DirectoryChange::Add(dir))?;
        let name = entry_name(name, MADE)?;
        self.gains_nothing(node, dir)?;
        let link = || {
            let linked = at.fs.link(at.cred, node.handle(), dir.handle(), name);
            linked.map_err(|why| self.told(at, dir, name, why))
        };
        let Changed { value, change } =
            self.tell_name(&cleared, (dir, name), link, |linked| (*node.handle(), linked.value))?;
        self.met(dir, name, node.handle());
        Ok(Changed { value: self.attr_out(&value), change: self.change_out(change) })
    }

    /// Returns the directory above, as the caller sees it; that of the root is the root itself.
    ///
    /// # Errors
    /// [`Status`]; [`Status::NoEnt`] if the caller may not know of it.
    pub fn parent(&self, dir: &Node) -> Result<Seen> {
        let at = self.gate(dir, Operation::Search)?;
        self.seen_or(&at.fs.parent(at.cred, dir.handle())?, Status::NoEnt)
    }

    /// The barrier to wait for before the data written to `node` are reported as stable.
    #[must_use]
    pub fn barrier(&self, node: &Node) -> Barrier {
        Barrier::new(Arc::clone(self.resolved.export().fs()), *node.handle(), None)
    }

    /// Returns the barrier to wait for before the reply to a change of names or attributes in one
    /// or two objects; none if the export is `async`.
    #[must_use]
    pub fn change_barrier(&self, first: &Node, second: Option<&Node>) -> Option<Barrier> {
        let second = second.filter(|node| *node != first).map(|node| *node.handle());
        let barrier =
            || Barrier::new(Arc::clone(self.resolved.export().fs()), *first.handle(), second);
        self.rules().sync.then(barrier)
    }

    /// Returns the file system, for the view's own questions. A verb gets it from the gate.
    fn fs(&self) -> &dyn Fs {
        &**self.resolved.export().fs()
    }

    /// Returns the user as which the caller acts, by which the caller can be recognized.
    #[must_use]
    pub fn user(&self) -> &Arc<Cred<Disk>> {
        self.resolved.caller().kept()
    }

    pub(crate) fn cred(&self) -> &Cred<Disk> {
        self.resolved.caller().disk()
    }

    /// Returns the owner and mode on disk of the object of a name, and the decision of the cloak
    /// about it, for administrators.
    pub(crate) fn behind(&self, dir: &Node, name: &[u8]) -> Result<(Attr<Disk>, Verdict)> {
        let attr = self.fs().lookup(&Cred::root(), dir.handle(), plain_name(name)?)?.node.attr;
        Ok((attr, self.verdict(&attr)))
    }

    /// Converts attributes to set into those on disk.
    fn set_in(&self, set: &SetAttr<Wire>) -> Result<SetAttr<Disk>> {
        self.rules().ids.set_in(set).map_err(|Unmapped| Status::BadOwner)
    }

    /// Looks up `.` or `..` of a directory, which the caller must be allowed to search.
    fn dots(&self, dir: &Node, name: &[u8]) -> Result<Seen> {
        let at = self.gate(dir, Operation::Search)?;
        let (granted, attr) = at.fs.access(at.cred, dir.handle(), Access::LOOKUP)?;
        match name {
            _ if attr.file_type != FileType::Directory => Err(Status::NotDir),
            _ if !granted.contains(Access::LOOKUP) => Err(Status::Acces),
            b"." => Ok(Seen { node: *dir, attr: self.attr_out(&attr) }),
            _ => self.parent(dir),
        }
    }

    fn change_out(&self, change: Change<Disk>) -> Change<Wire> {
        let before = change.before.filter(|attr| !self.looks_changed(attr));
        Change { before, ..change }.map(|attr| self.attr_out(&attr))
    }

    /// Converts attributes for the caller. Two exports of one file system get different file system
    /// ids, or a client would share caches between them although their rules differ. The id of an
    /// export's root depends on the export's number alone, so that it stays the same when devices
    /// are renumbered.
    #[inline(always)]
    fn attr_out(&self, attr: &Attr<Disk>) -> Attr<Wire> {
        // The ids are computed before the single copy of the other attributes: a branch in the
        // middle of the copy, or between two copies, makes it slow.
        let (uid, gid) = if self.resolved.is_plain() {
            comity_idmap::unmapped(attr)
        } else if self.resolved.maps_owners_only() {
            self.rules().ids.mapped(self.resolved.caller(), attr)
        } else {
            return self.shown_otherwise(attr);
        };
        let mut seen = attr.with_ids(uid, gid);
        seen.fsid ^= self.resolved.fsid();
        seen
    }
}

impl View<'_> {
    /// Returns the attributes for a caller that is identified by a key, or that may not cache
    /// directories.
    #[cold]
    fn shown_otherwise(&self, attr: &Attr<Disk>) -> Attr<Wire> {
        let (uid, gid) = self.rules().ids.shown(self.resolved.caller(), attr);
        let mut seen = attr.with_ids(uid, gid);
        seen.fsid ^= self.resolved.fsid();
        if self.looks_changed(attr) {
            let nanoseconds = self.resolved.export().moment_nanoseconds();
            (seen.mtime.nanoseconds, seen.ctime.nanoseconds) = (nanoseconds, nanoseconds);
            seen.change = seen.ctime.change();
        }
        seen
    }
}
