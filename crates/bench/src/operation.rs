use std::fmt;
use std::str::FromStr;

use comity_proto::nfs4::Layoutiomode4;

/// One kind of request, with the parameters of its measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Nothing: the cost of a call itself.
    Null,
    /// Attributes of the small files of a [tree](crate::fixture_tree::FixtureTree), in turn.
    Getattr,
    /// LOOKUP of the small files, in turn.
    Lookup,
    /// ACCESS on the small files, in turn.
    Access,
    /// A sequential read of this many bytes of one file.
    Read(u32),
    /// A sequential write of this many bytes, to one file for each connection.
    Write(u32, Stable),
    /// A new file in one directory.
    Create,
    /// A page of a directory of 1,000 files, with their attributes and handles.
    Readdirplus,
    /// In a session of NFS version 4.1.
    InSession(InSession),
}

/// One kind of COMPOUND in a session of NFS version 4.1, after SEQUENCE and PUTFH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InSession {
    /// The attributes that Linux asks for, of the small files in turn.
    Getattr,
    /// A sequential read of this many bytes of one open file.
    Read(u32),
    /// A small file opened by its name for reading and writing, then closed, each with a call of
    /// its own.
    OpenClose,
    /// A byte of an open file locked, then unlocked.
    LockUnlock,
    /// A layout of an open file got, then returned. The file must be on data servers.
    Layout(Layoutiomode4),
}

/// The time by which written data must be on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stable {
    /// The data are stable some time later, or after a COMMIT.
    Unstable,
    /// The data are stable before the reply.
    FileSync,
}

const KIB4: u32 = 4096;
const MIB: u32 = 1 << 20;

/// The operations that are measured, with their names.
pub const OPERATIONS: &[(&str, Operation)] = &[
    ("null", Operation::Null),
    ("getattr", Operation::Getattr),
    ("lookup", Operation::Lookup),
    ("access", Operation::Access),
    ("read-4k", Operation::Read(KIB4)),
    ("read-1m", Operation::Read(MIB)),
    ("write-4k", Operation::Write(KIB4, Stable::Unstable)),
    ("write-1m", Operation::Write(MIB, Stable::Unstable)),
    ("write-4k-sync", Operation::Write(KIB4, Stable::FileSync)),
    ("create", Operation::Create),
    ("readdirplus", Operation::Readdirplus),
    ("v4.1-getattr", Operation::InSession(InSession::Getattr)),
    ("v4.1-read-4k", Operation::InSession(InSession::Read(KIB4))),
    ("v4.1-open-close", Operation::InSession(InSession::OpenClose)),
    ("v4.1-lock-unlock", Operation::InSession(InSession::LockUnlock)),
    ("v4.1-layout-read", Operation::InSession(InSession::Layout(Layoutiomode4::Read))),
    ("v4.1-layout-write", Operation::InSession(InSession::Layout(Layoutiomode4::Rw))),
];

impl FromStr for Operation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = OPERATIONS.iter().find(|(known, _)| *known == name);
        found.map(|(_, operation)| *operation).ok_or_else(|| {
            let names: Vec<_> = OPERATIONS.iter().map(|(name, _)| *name).collect();
            format!("no operation `{name}`; there are {}", names.join(", "))
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = OPERATIONS.iter().find(|(_, known)| known == self);
        f.write_str(found.map_or("other", |(name, _)| name))
    }
}
