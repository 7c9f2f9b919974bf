/// A verb of [`Fs`](crate::Fs), with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the verb of that name")]
pub enum Verb {
    Properties,
    Statfs,
    Getattr,
    Setattr,
    Access,
    Lookup,
    Parent,
    DirectoriesOf,
    Readlink,
    Read,
    Write,
    Commit,
    Create,
    Mkdir,
    Symlink,
    Mknod,
    Remove,
    Rmdir,
    Rename,
    Link,
    Readdir,
    Getacl,
    Setacl,
    Getxattr,
    Setxattr,
    Listxattr,
    Seek,
    Allocate,
    Deallocate,
    Copy,
    CloneRange,
}

impl Verb {
    /// All verbs in the order of their numbers.
    pub const ALL: [Self; 31] = [
        Self::Properties,
        Self::Statfs,
        Self::Getattr,
        Self::Setattr,
        Self::Access,
        Self::Lookup,
        Self::Parent,
        Self::DirectoriesOf,
        Self::Readlink,
        Self::Read,
        Self::Write,
        Self::Commit,
        Self::Create,
        Self::Mkdir,
        Self::Symlink,
        Self::Mknod,
        Self::Remove,
        Self::Rmdir,
        Self::Rename,
        Self::Link,
        Self::Readdir,
        Self::Getacl,
        Self::Setacl,
        Self::Getxattr,
        Self::Setxattr,
        Self::Listxattr,
        Self::Seek,
        Self::Allocate,
        Self::Deallocate,
        Self::Copy,
        Self::CloneRange,
    ];

    /// Its name as in the source, for logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Properties => "properties",
            Self::Statfs => "statfs",
            Self::Getattr => "getattr",
            Self::Setattr => "setattr",
            Self::Access => "access",
            Self::Lookup => "lookup",
            Self::Parent => "parent",
            Self::DirectoriesOf => "directories_of",
            Self::Readlink => "readlink",
            Self::Read => "read",
            Self::Write => "write",
            Self::Commit => "commit",
            Self::Create => "create",
            Self::Mkdir => "mkdir",
            Self::Symlink => "symlink",
            Self::Mknod => "mknod",
            Self::Remove => "remove",
            Self::Rmdir => "rmdir",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Readdir => "readdir",
            Self::Getacl => "getacl",
            Self::Setacl => "setacl",
            Self::Getxattr => "getxattr",
            Self::Setxattr => "setxattr",
            Self::Listxattr => "listxattr",
            Self::Seek => "seek",
            Self::Allocate => "allocate",
            Self::Deallocate => "deallocate",
            Self::Copy => "copy",
            Self::CloneRange => "clone_range",
        }
    }

    /// Returns whether the verb changes stored data.
    #[must_use]
    pub const fn changes(self) -> bool {
        matches!(
            self,
            Self::Setattr
                | Self::Write
                | Self::Create
                | Self::Mkdir
                | Self::Symlink
                | Self::Mknod
                | Self::Remove
                | Self::Rmdir
                | Self::Rename
                | Self::Link
                | Self::Setacl
                | Self::Setxattr
                | Self::Allocate
                | Self::Deallocate
                | Self::Copy
                | Self::CloneRange
        )
    }
}
