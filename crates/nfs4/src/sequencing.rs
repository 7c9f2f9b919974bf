//! The front desks: what must come first in a COMPOUND, and what that says about the rest. One for
//! 4.0, where every operation says itself whose it is; one for 4.1 and 4.2, where SEQUENCE says it
//! for all.

mod sequenced;

use comity_proto::nfs4::{CompoundHead, Nfsstat4};
use comity_state::{SequenceAnswer, Ticket};

use crate::limits::{REPLY_BYTES_MAX, REPLY_HEADER_BYTES};
use crate::traits::Traits;

/// The sequencing of a COMPOUND, by its minor version.
pub(crate) enum Sequencing {
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
    /// The slot of this request.
    pub(crate) ticket: Option<Ticket>,
    /// It was done before, and its reply was not kept.
    pub(crate) forgotten: bool,
}

impl Sequenced {
    /// The request has its slot: from now on the session's limits hold.
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

    /// Checks that an operation may stand at its place: `at`, 0 for the first.
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

    /// Most bytes of the reply.
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

    /// Returns the failure for a reply that would be too long.
    pub(crate) const fn too_big(&self) -> Nfsstat4 {
        match self {
            Self::Unsequenced => Nfsstat4::Resource,
            Self::Sequenced(sequenced) if sequenced.keeps_reply => Nfsstat4::RepTooBigToCache,
            Self::Sequenced(_) => Nfsstat4::RepTooBig,
        }
    }

    /// Returns the answer to SEQUENCE, by which the request can be referred to.
    pub(crate) fn answer(&self) -> Option<&SequenceAnswer> {
        match self {
            Self::Unsequenced => None,
            Self::Sequenced(sequenced) => sequenced.ticket.as_ref().map(Ticket::answer),
        }
    }

    /// The slot of this request, to be told what was answered.
    pub(crate) fn take_ticket(&mut self) -> Option<Ticket> {
        match self {
            Self::Unsequenced => None,
            Self::Sequenced(sequenced) => sequenced.ticket.take(),
        }
    }

    /// A failure in the words of the minor version. 4.1 has none for a bound of the server (RFC
    /// 8881, 15.1): the client is to come again. 4.0 has none for the state of another principal.
    pub(crate) const fn spoken(&self, status: Nfsstat4) -> Nfsstat4 {
        match (self, status) {
            (Self::Sequenced(_), Nfsstat4::Resource) => Nfsstat4::Delay,
            (Self::Unsequenced, Nfsstat4::WrongCred) => Nfsstat4::BadStateid,
            _ => status,
        }
    }

    /// Returns the failure for too many operations.
    pub(crate) const fn too_many(&self) -> Nfsstat4 {
        match self {
            Self::Unsequenced => Nfsstat4::Resource,
            Self::Sequenced(_) => Nfsstat4::TooManyOps,
        }
    }
}
