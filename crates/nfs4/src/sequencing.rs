//! The rules about the first operation of a COMPOUND. In 4.0 there are none, and each operation
//! names its client. In 4.1 and 4.2, SEQUENCE comes first and names the session.

mod sequenced;

use comity_proto::nfs4::{CompoundHead, Nfsstat4};
use comity_state::{SequenceAnswer, Ticket};

use crate::limits::{REPLY_BYTES_MAX, REPLY_HEADER_BYTES};
use crate::traits::Traits;

/// The sequencing of a COMPOUND, by its minor version.
pub(crate) enum Sequencing {
    /// The rules of 4.0.
    Unsequenced,
    /// The rules of 4.1 and 4.2.
    Sequenced(Sequenced),
}

/// The session's limits and the slot of a COMPOUND of 4.1 or 4.2.
#[derive(Debug, Default)]
pub(crate) struct Sequenced {
    /// Most bytes of the reply that the session allows; none before SEQUENCE.
    pub(crate) reply_bytes_max: Option<usize>,
    /// True if the client asked for the reply to be kept.
    pub(crate) keeps_reply: bool,
    /// The slot of this request.
    pub(crate) ticket: Option<Ticket>,
    /// True if the request is a retry whose reply was not kept.
    pub(crate) forgotten: bool,
}

impl Sequenced {
    /// Applies the limits of the session when SEQUENCE has found the slot.
    pub(crate) fn begin(&mut self, ticket: Ticket) {
        let fore = *ticket.session().fore();
        self.keeps_reply = ticket.cache_this();
        let bytes_max = if self.keeps_reply {
            fore.response_bytes_max.min(fore.response_cached_bytes_max)
        } else {
            fore.response_bytes_max
        };
        self.reply_bytes_max =
            Some((bytes_max as usize).saturating_sub(REPLY_HEADER_BYTES).min(REPLY_BYTES_MAX));
        self.ticket = Some(ticket);
    }
}

impl Sequencing {
    /// The rules of a minor version.
    pub(crate) fn of(minor: u32) -> Self {
        match minor {
            0 => Self::Unsequenced,
            _ => Self::Sequenced(Sequenced::default()),
        }
    }

    /// Checks that an operation may stand at position `at`; the first position is 0.
    pub(crate) fn admit(
        &self,
        head: &CompoundHead<'_>,
        at: u32,
        operation: (u32, Traits),
    ) -> Result<(), Nfsstat4> {
        match self {
            Self::Unsequenced => Ok(()),
            Self::Sequenced(sequenced) if sequenced.forgotten && at > 0 => {
                Err(Nfsstat4::RetryUncachedRep)
            }
            Self::Sequenced(_) => sequenced::admit(head, at, operation),
        }
    }

    /// Returns the most bytes of the reply.
    pub(crate) fn reply_bytes_max(&self) -> usize {
        match self {
            Self::Unsequenced => REPLY_BYTES_MAX,
            Self::Sequenced(sequenced) => sequenced.reply_bytes_max.unwrap_or(REPLY_BYTES_MAX),
        }
    }

    /// Returns whether the reply is kept for a client that asks again.
    pub(crate) const fn keeps_reply(&self) -> bool {
        match self {
            Self::Unsequenced => false,
            Self::Sequenced(sequenced) => sequenced.keeps_reply,
        }
    }

    /// Returns the error for a reply that would be too long.
    pub(crate) const fn too_big(&self) -> Nfsstat4 {
        match self {
            Self::Unsequenced => Nfsstat4::Resource,
            Self::Sequenced(sequenced) if sequenced.keeps_reply => Nfsstat4::RepTooBigToCache,
            Self::Sequenced(_) => Nfsstat4::RepTooBig,
        }
    }

    /// Returns the result of SEQUENCE, by which callbacks refer to the request.
    pub(crate) fn answer(&self) -> Option<&SequenceAnswer> {
        match self {
            Self::Unsequenced => None,
            Self::Sequenced(sequenced) => sequenced.ticket.as_ref().map(Ticket::answer),
        }
    }

    /// Removes and returns the slot of this request.
    pub(crate) fn take_ticket(&mut self) -> Option<Ticket> {
        match self {
            Self::Unsequenced => None,
            Self::Sequenced(sequenced) => sequenced.ticket.take(),
        }
    }

    /// Returns the error that the minor version defines for a failure. 4.1 has no RESOURCE for a
    /// bound of the server (RFC 8881, 15.1): DELAY makes the client try again. 4.0 has no
    /// WRONG_CRED.
    pub(crate) const fn spoken(&self, status: Nfsstat4) -> Nfsstat4 {
        match (self, status) {
            (Self::Sequenced(_), Nfsstat4::Resource) => Nfsstat4::Delay,
            (Self::Unsequenced, Nfsstat4::WrongCred) => Nfsstat4::BadStateid,
            _ => status,
        }
    }

    /// Returns the error for too many operations.
    pub(crate) const fn too_many(&self) -> Nfsstat4 {
        match self {
            Self::Unsequenced => Nfsstat4::Resource,
            Self::Sequenced(_) => Nfsstat4::TooManyOps,
        }
    }
}
