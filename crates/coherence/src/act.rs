use comity_export::Node;
use comity_state::Share;
use comity_vfs::{SetAttr, Status, Wire};

/// The operation that is about to be done on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act<'a> {
    /// Reads its data.
    Read,
    /// Writes data that may be nowhere but at the client.
    Write,
    /// Sets its size.
    Resize,
    /// Sets its times, and neither the rights to it nor anything else.
    Times {
        /// True if the time of the last access is set.
        accessed: bool,
        /// True if the time of the last change of its data or names is set.
        modified: bool,
    },
    /// Changes its mode, owner, group or ACL, and with it the rights to it.
    Rights,
    /// Changes its extended attributes.
    Tag,
    /// Gives it another name in this directory.
    Link(&'a Node),
    /// Removes a name of it from this directory.
    Unlink(&'a Node),
    /// Makes a name in it; it is a directory.
    AddName,
    /// Removes a name from it; it is a directory.
    RemoveName,
    /// Replaces a name in it by another one; it is a directory.
    Rename,
}

impl Act<'_> {
    /// Returns the act of setting attributes, and ACLs if `sets_acls` is true.
    #[must_use]
    pub const fn of_setting(set: &SetAttr<Wire>, sets_acls: bool) -> Self {
        let changes_rights = set.mode.is_some() || set.uid.is_some() || set.gid.is_some();
        match set.size {
            Some(_) => Self::Resize,
            None if changes_rights || sets_acls => Self::Rights,
            None => Self::Times { accessed: set.atime.is_some(), modified: set.mtime.is_some() },
        }
    }

    /// Returns whether the operation contradicts layouts of other clients. Reads and writes do not:
    /// clients with layouts see them at the data servers.
    pub(crate) const fn contradicts_layouts(self) -> bool {
        matches!(self, Self::Resize | Self::Rights)
    }

    /// Returns the share with which the operation conflicts with delegations.
    pub(crate) const fn share(self) -> Share {
        match self {
            Self::Read => Share::access(Share::READ),
            Self::AddName => Share::access(Share::BOTH | Share::ADDED),
            Self::RemoveName => Share::access(Share::BOTH | Share::REMOVED),
            Self::Rename => Share::access(Share::BOTH | Share::RENAMED),
            Self::Times { accessed, modified } => {
                let accessed = if accessed { Share::ACCESSED } else { 0 };
                let modified = if modified { Share::MODIFIED } else { 0 };
                Share::access(Share::BOTH | Share::ATTRIBUTES | accessed | modified)
            }
            _ => Share::access(Share::BOTH),
        }
    }

    /// Returns the access that deny modes may forbid.
    pub(crate) const fn access(self) -> u32 {
        match self {
            Self::Read => Share::READ,
            Self::Write | Self::Resize => Share::WRITE,
            Self::Times { .. }
            | Self::Rights
            | Self::Tag
            | Self::Link(_)
            | Self::Unlink(_)
            | Self::AddName
            | Self::RemoveName
            | Self::Rename => 0,
        }
    }

    /// Returns the error of NFSv3 if a deny mode forbids the operation. A client discards the data
    /// of a WRITE if it gets an error, and its program may have ended, so it gets an error that
    /// makes it retry. Nothing is lost if a READ or a truncation is refused.
    pub(crate) const fn denied(self) -> Status {
        match self {
            Self::Write => Status::Locked,
            _ => Status::Acces,
        }
    }
}
