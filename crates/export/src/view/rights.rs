//! The gate that every verb passes before the file system, with the object and the class of its
//! operation.

use comity_grants::Operation;
use comity_vfs::{Access, Cred, Disk, Fs, Result, Status};

use super::{Node, View};

/// A change that may be visible in a directory, before it is made.
#[derive(Debug, Clone, Copy)]
pub(super) enum DirectoryChange<'n> {
    /// A name is added to the directory.
    Add(&'n Node),
    /// A name is removed from the directory.
    Remove(&'n Node),
    /// A name moves from the first directory to the second.
    Move(&'n Node, &'n Node),
    /// The attributes of an object change; it may be a directory.
    Attributes(&'n Node),
    /// Only the size of a file changes.
    Size(&'n Node),
    /// The size of a file and other attributes change.
    SizeAndAttributes(&'n Node),
}

/// The file system and the ids for an operation that the caller may do.
#[derive(Clone, Copy)]
pub(super) struct Passage<'v> {
    /// The file system that holds the object.
    pub(super) fs: &'v dyn Fs,
    /// The ids under which the operation is done there.
    pub(super) cred: &'v Cred<Disk>,
}

impl Passage<'_> {
    /// Returns the passage for an operation on two objects.
    ///
    /// # Errors
    /// [`Status::XDev`] if the caller acts under other ids at the other object: clients then copy.
    pub(super) fn together(self, other: Passage<'_>) -> Result<Self> {
        if std::ptr::eq(self.cred, other.cred) { Ok(self) } else { Err(Status::XDev) }
    }
}

impl View<'_> {
    /// Returns the passage if the caller may do an operation of this class on this object. It is
    /// called for each operation, also on a file that was opened before. For a caller with ids of
    /// its own, the object does not matter; for a key, the rights to each object are decided.
    ///
    /// # Errors
    /// [`Status::RoFs`] for a change if the export is read-only; [`Status::Acces`],
    /// [`Status::Stale`] if it was not granted to the key.
    #[inline(always)]
    pub(super) fn gate(&self, object: &Node, class: Operation) -> Result<Passage<'_>> {
        if class.changes() && self.rules().read_only {
            return Err(Status::RoFs);
        }
        if self.resolved.is_by_layout() && !is_about_data(class) {
            return Err(Status::Acces);
        }
        match self.resolved.holder() {
            None => Ok(Passage { fs: self.fs(), cred: self.cred() }),
            Some(holder) => self.gate_of_key(holder, object, class),
        }
    }

    /// Returns the passage if the caller may make this change. Every change of a directory is
    /// announced here before it is made.
    ///
    /// # Errors
    /// As [`View::gate`].
    pub(super) fn before_change(&self, change: DirectoryChange<'_>) -> Result<Passage<'_>> {
        if self.resolved.is_by_layout() {
            return Err(Status::Acces);
        }
        match change {
            DirectoryChange::Add(dir) => self.gate(dir, Operation::Create),
            DirectoryChange::Remove(dir) => self.gate(dir, Operation::Delete),
            DirectoryChange::Move(source, target) => {
                let from = self.gate(source, Operation::Delete)?;
                self.gate(target, Operation::Create)?.together(from)
            }
            DirectoryChange::Attributes(node) => self.gate(node, Operation::SetAttributes),
            DirectoryChange::Size(file) => self.gate(file, Operation::Write),
            DirectoryChange::SizeAndAttributes(file) => {
                let writing = self.gate(file, Operation::Write)?;
                self.gate(file, Operation::SetAttributes)?.together(writing)
            }
        }
    }

    /// Refuses a caller that has no right to change the attributes of an object. It is called
    /// before a change in several steps, the last of which needs that right.
    ///
    /// # Errors
    /// As for a change of attributes: [`Status::RoFs`], [`Status::Acces`], [`Status::Stale`].
    pub fn may_set_attributes(&self, node: &Node) -> Result<()> {
        self.before_change(DirectoryChange::Attributes(node)).map(drop)
    }

    /// Returns the rights that ACCESS may report: none to change anything if the export is
    /// read-only.
    pub(super) fn grantable(&self) -> Access {
        let reading = Access::READ | Access::LOOKUP | Access::EXECUTE;
        if self.rules().read_only { reading } else { Access::ALL }
    }
}

/// Returns whether a caller with a layout may do operations of a class.
const fn is_about_data(class: Operation) -> bool {
    matches!(class, Operation::Look | Operation::Read | Operation::Write)
}
