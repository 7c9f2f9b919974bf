use std::fmt;

/// The result of a verb, or the error.
pub type Result<T> = std::result::Result<T, Status>;

/// The error of a verb: a closed list in the spelling of RFC 1813 (2.6) and RFC 8881 (15.1); each
/// protocol converts it to its own numbers in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not the owner, or the operation needs privilege.
    Perm,
    /// No such name.
    NoEnt,
    /// The device failed.
    Io,
    /// No such device or address.
    NxIo,
    /// Permission denied.
    Acces,
    /// The name exists already.
    Exist,
    /// Source and target are in different file systems.
    XDev,
    /// No such device.
    NoDev,
    /// Not a directory.
    NotDir,
    /// The object is a directory, where none is allowed.
    IsDir,
    /// An argument is invalid.
    Inval,
    /// Beyond the largest file size.
    FBig,
    /// No space left.
    NoSpc,
    /// The file system is read-only.
    RoFs,
    /// Too many hard links.
    MLink,
    /// The name is too long.
    NameTooLong,
    /// The directory is not empty.
    NotEmpty,
    /// Over the owner's quota.
    DQuot,
    /// The object of the handle does not exist any more.
    Stale,
    /// The handle is not one of this server's.
    BadHandle,
    /// The guard of a SETATTR did not match (RFC 1813, 3.3.2).
    NotSync,
    /// The cookie was never returned by READDIR.
    BadCookie,
    /// Not supported by this file system.
    NotSupp,
    /// The buffer or request is too small.
    TooSmall,
    /// An internal error that fits nothing else.
    ServerFault,
    /// The type of object cannot be made here.
    BadType,
    /// Try again later: the operation waits for something slow.
    Delay,
    /// The caller was interrupted while it waited for another machine: the operation may have been
    /// done or not.
    Interrupted,
    /// The object is a symbolic link, where none is allowed.
    SymLink,
    /// The byte range is locked by another owner.
    Locked,
    /// No such extended attribute (RFC 8276).
    NoXattr,
    /// The extended attribute is too big (RFC 8276).
    XattrTooBig,
    /// The owner or group to be set has no id on this side.
    BadOwner,
    /// The file's data ends before the offset asked for (SEEK, RFC 7862, 15.11).
    NoData,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Perm => "operation not permitted",
            Self::NoEnt => "no such file or directory",
            Self::Io => "input/output error",
            Self::NxIo => "no such device or address",
            Self::Acces => "permission denied",
            Self::Exist => "file exists",
            Self::XDev => "not on the same file system",
            Self::NoDev => "no such device",
            Self::NotDir => "not a directory",
            Self::IsDir => "is a directory",
            Self::Inval => "invalid argument",
            Self::FBig => "file too large",
            Self::NoSpc => "no space left on device",
            Self::RoFs => "read-only file system",
            Self::MLink => "too many links",
            Self::NameTooLong => "file name too long",
            Self::NotEmpty => "directory not empty",
            Self::DQuot => "quota exceeded",
            Self::Stale => "stale file handle",
            Self::BadHandle => "not a file handle of this server",
            Self::NotSync => "guard time does not match",
            Self::BadCookie => "not a directory cookie of this server",
            Self::NotSupp => "not supported",
            Self::TooSmall => "buffer too small",
            Self::ServerFault => "server fault",
            Self::BadType => "type not supported",
            Self::Delay => "try again later",
            Self::Interrupted => "interrupted",
            Self::SymLink => "is a symbolic link",
            Self::Locked => "byte range is locked",
            Self::NoXattr => "no such extended attribute",
            Self::XattrTooBig => "extended attribute too big",
            Self::BadOwner => "no id here for that owner",
            Self::NoData => "no data beyond the offset",
        })
    }
}

impl std::error::Error for Status {}
