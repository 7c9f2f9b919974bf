use comity_export::Node;
use comity_state::Share;
use comity_vfs::Status;

/// The operation that is about to be done on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act<'a> {
    /// Reads its data.
    Read,
    /// Writes data that may be nowhere but at the client.
    Write,
    /// Sets its size.
    Resize,
    /// Changes its attributes.
    Change,
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
}

impl Act<'_> {
    /// Returns the share with which the operation conflicts with delegations.
    pub(crate) const fn share(self) -> Share {
        match self {
            Self::Read => Share::access(Share::READ),
            Self::AddName | Self::RemoveName => Share::access(Share::BOTH | Share::NAMES),
            _ => Share::access(Share::BOTH),
        }
    }

    /// Returns the access that deny modes may forbid.
    pub(crate) const fn access(self) -> u32 {
        match self {
            Self::Read => Share::READ,
            Self::Write | Self::Resize => Share::WRITE,
            Self::Change
            | Self::Tag
            | Self::Link(_)
            | Self::Unlink(_)
            | Self::AddName
            | Self::RemoveName => 0,
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
