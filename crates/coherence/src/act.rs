use comity_export::Node;
use comity_state::Share;
use comity_vfs::Status;

/// The operation that is about to be done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act<'a> {
    /// Reads its data.
    Read,
    /// Writes data that may be nowhere else but at the client.
    Write,
    /// Sets its size.
    Resize,
    /// Changes its attributes.
    Change,
    /// Changes its extended attributes.
    Tag,
    /// Gives it another name in this directory.
    Link(&'a Node),
    /// Takes a name of it out of this directory.
    Unlink(&'a Node),
    /// Makes a name in it; it is a directory.
    AddName,
    /// Takes a name out of it; it is a directory.
    RemoveName,
}

impl Act<'_> {
    /// The share that delegations are held against.
    pub(crate) const fn share(self) -> Share {
        match self {
            Self::Read => Share::access(Share::READ),
            Self::AddName | Self::RemoveName => Share::access(Share::BOTH | Share::NAMES),
            _ => Share::access(Share::BOTH),
        }
    }

    /// The access that deny modes are held against.
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

    /// The answer of NFSv3 where a deny mode forbids it. A client drops what it wanted to write
    /// when it is told of an error, and its program may have ended: it is told to come again.
    /// Nothing is lost by a READ or a truncation that is refused.
    pub(crate) const fn denied(self) -> Status {
        match self {
            Self::Write => Status::Locked,
            _ => Status::Acces,
        }
    }
}
