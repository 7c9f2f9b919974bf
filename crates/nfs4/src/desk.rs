//! The front desks: what must come first in a COMPOUND, and what that says about the rest. One for
//! 4.0, where every operation says itself whose it is; one for 4.1 and 4.2, where SEQUENCE says it
//! for all.

mod sequenced;

use comity_proto::nfs4::{CompoundHead, Nfsstat4};

use crate::limits::REPLY_BYTES_MAX;
use crate::table::Row;

/// What came first in a COMPOUND.
pub(crate) enum Desk {
    /// 4.0.
    Unsequenced,
    /// 4.1 and 4.2.
    Sequenced(Sequenced),
}

/// The place of the operation in hand among the others, in 4.1 and 4.2.
#[derive(Debug, Default)]
pub(crate) struct Sequenced {
    /// Bytes of the reply that the session allows, once SEQUENCE has found it.
    pub(crate) reply_bytes_max: Option<usize>,
    /// The client asked for the reply to be kept.
    pub(crate) keeps_reply: bool,
}

impl Desk {
    /// The desk for a minor version.
    pub(crate) fn of(minor: u32) -> Self {
        match minor {
            0 => Self::Unsequenced,
            _ => Self::Sequenced(Sequenced::default()),
        }
    }

    /// Whether an operation may stand where it stands: `at`, 0 for the first.
    pub(crate) fn admit(
        &self,
        head: &CompoundHead<'_>,
        at: u32,
        row: &Row,
    ) -> Result<(), Nfsstat4> {
        match self {
            Self::Unsequenced => Ok(()),
            Self::Sequenced(_) => sequenced::admit(head, at, row),
        }
    }

    /// Most bytes of the reply.
    pub(crate) fn reply_bytes_max(&self) -> usize {
        match self {
            Self::Unsequenced => REPLY_BYTES_MAX,
            Self::Sequenced(desk) => desk.reply_bytes_max.unwrap_or(REPLY_BYTES_MAX),
        }
    }

    /// Whether the reply is kept for a client that asks again.
    pub(crate) const fn keeps_reply(&self) -> bool {
        match self {
            Self::Unsequenced => false,
            Self::Sequenced(desk) => desk.keeps_reply,
        }
    }

    /// How it is said that a reply would be longer.
    pub(crate) const fn too_big(&self) -> Nfsstat4 {
        match self {
            Self::Unsequenced => Nfsstat4::Resource,
            Self::Sequenced(_) => Nfsstat4::RepTooBig,
        }
    }

    /// How it is said that there are too many operations.
    pub(crate) const fn too_many(&self) -> Nfsstat4 {
        match self {
            Self::Unsequenced => Nfsstat4::Resource,
            Self::Sequenced(_) => Nfsstat4::TooManyOps,
        }
    }
}
