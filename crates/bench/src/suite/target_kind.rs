/// Kinds of operations, in the words of NFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Open,
    Close,
    Create,
    Read,
    Write,
    Sync,
    Getattr,
    Lookup,
    List,
    Mkdir,
    Rmdir,
    Symlink,
    Readlink,
    Remove,
    Setattr,
    Lock,
    Unlock,
}

impl Kind {
    /// All kinds, in their order.
    pub const ALL: [Self; 17] = [
        Self::Open,
        Self::Close,
        Self::Create,
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Getattr,
        Self::Lookup,
        Self::List,
        Self::Mkdir,
        Self::Rmdir,
        Self::Symlink,
        Self::Readlink,
        Self::Remove,
        Self::Setattr,
        Self::Lock,
        Self::Unlock,
    ];

    /// Returns the name of the kind in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Close => "CLOSE",
            Self::Create => "CREATE",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Sync => "SYNC",
            Self::Getattr => "GETATTR",
            Self::Lookup => "LOOKUP",
            Self::List => "LIST",
            Self::Mkdir => "MKDIR",
            Self::Rmdir => "RMDIR",
            Self::Symlink => "SYMLINK",
            Self::Readlink => "READLINK",
            Self::Remove => "REMOVE",
            Self::Setattr => "SETATTR",
            Self::Lock => "LOCK",
            Self::Unlock => "UNLOCK",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_at_its_place() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }
}
