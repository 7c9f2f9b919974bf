//! The gate that every verb passes on its way to the file system, with the object and the class of
//! its operation. The rights of the export decide today.

use comity_vfs::{Access, Fs, Result, Status};

use super::{Node, View};

/// The class of an operation: the right that a caller needs for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationClass {
    /// Learn what an object is like.
    Look,
    /// Read data or list a directory.
    Read,
    /// Find a name in a directory.
    Search,
    /// Change data.
    Write,
    /// Change attributes.
    SetAttributes,
    /// Put a name into a directory.
    Create,
    /// Take a name out of a directory.
    Delete,
}

impl OperationClass {
    /// Returns whether such an operation changes something.
    const fn changes(self) -> bool {
        matches!(self, Self::Write | Self::SetAttributes | Self::Create | Self::Delete)
    }
}

/// A change that may be seen in a directory, before it is made.
#[derive(Debug, Clone, Copy)]
pub(super) enum DirectoryChange<'n> {
    /// A name comes into the directory.
    Add(&'n Node),
    /// A name leaves the directory.
    Remove(&'n Node),
    /// A name leaves the first directory and comes into the second.
    Move(&'n Node, &'n Node),
    /// The attributes of an object change, which may be a directory.
    Attributes(&'n Node),
}

impl View<'_> {
    /// Returns the file system if the caller may do an operation of this class to this object. It
    /// is asked for each operation, also of a file that was opened before. All objects of an export
    /// have the same rights so far.
    ///
    /// # Errors
    /// [`Status::RoFs`] for a change where the export is read-only.
    #[inline(always)]
    pub(super) fn gate(&self, _object: &Node, class: OperationClass) -> Result<&dyn Fs> {
        if class.changes() && self.rules().read_only { Err(Status::RoFs) } else { Ok(self.fs()) }
    }

    /// Returns the file system if the caller may make this change. Every change of a directory is
    /// known here before it is made.
    ///
    /// # Errors
    /// The same.
    pub(super) fn before_change(&self, change: DirectoryChange<'_>) -> Result<&dyn Fs> {
        match change {
            DirectoryChange::Add(dir) => self.gate(dir, OperationClass::Create),
            DirectoryChange::Remove(dir) => self.gate(dir, OperationClass::Delete),
            DirectoryChange::Move(source, target) => {
                self.gate(source, OperationClass::Delete)?;
                self.gate(target, OperationClass::Create)
            }
            DirectoryChange::Attributes(node) => self.gate(node, OperationClass::SetAttributes),
        }
    }

    /// The rights that ACCESS may report: none to change anything where the export is read-only.
    pub(super) fn grantable(&self) -> Access {
        let reading = Access::READ | Access::LOOKUP | Access::EXECUTE;
        if self.rules().read_only { reading } else { Access::ALL }
    }
}
