use comity_proto::nfs4::Nfsstat4;
use comity_vfs::Status;
use comity_xdr::{Decoder, Encoder, Malformed};

use crate::compound::Compound;
use crate::status::nfsstat4;

/// An operation: reads its arguments, acts on the COMPOUND, appends the body of its result (what
/// follows the status).
pub(crate) type Perform =
    for<'a> fn(&mut Compound<'a>, &mut Decoder<'a>, &mut Encoder) -> Result<(), Stop>;

/// An operation of the table.
pub(crate) struct Row {
    /// Its number.
    pub(crate) number: u32,
    /// What the RFC calls it.
    pub(crate) name: &'static str,
    /// The last minor version that has it; to those behind it is not supported.
    pub(crate) until: u32,
    /// What else is to be known of it.
    pub(crate) traits: Traits,
    /// Words of zero that follow the status of a failure.
    pub(crate) failure_words: usize,
    /// What it does.
    pub(crate) perform: Perform,
}

/// What is to be known of an operation before it is begun, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits(u32);

impl Traits {
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);
    /// There must be a current file handle.
    pub(crate) const NEEDS_HANDLE: Self = Self(1);
    /// It changes something that only its result tells: it is not begun if that may not fit.
    pub(crate) const TELLS: Self = Self(8);
    /// It changes an object, and is refused above the exports; it is not begun either if its result
    /// may not fit.
    pub(crate) const CHANGES: Self = Self(2).and(Self::TELLS);
    /// From 4.1 on it may be the first operation, and then must be the only one (RFC 8881, 2.10.2).
    pub(crate) const SESSIONLESS: Self = Self(4);

    /// Both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` hold.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Why an operation is not OK. The COMPOUND ends there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// What it appended is taken back; the status alone is said.
    Status(Nfsstat4),
    /// What it appended is the body that goes with this failure (LOCK, LOCKT, SETCLIENTID).
    Told(Nfsstat4),
    /// This COMPOUND was answered before: this is the answer, its status in front.
    Replay(Box<[u8]>),
}

impl From<Nfsstat4> for Stop {
    fn from(status: Nfsstat4) -> Self {
        Self::Status(status)
    }
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(nfsstat4(status))
    }
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::Status(Nfsstat4::BadXdr)
    }
}
