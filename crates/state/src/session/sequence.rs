//! SEQUENCE: a request takes its slot, or is answered as it was before (RFC 8881, 18.46).

use std::ops::BitOr;
use std::sync::Arc;
use std::time::Duration;

use super::slots::Found;
use super::{Back, ChannelAttrs, Channels, Direction, Session};
use crate::limits::SMALL_REPLY_BYTES_MAX;
use crate::{Client, ConnectionId, Engine, Error, Origin, Result, SessionId};

/// The arguments of SEQUENCE, and what marks the request.
#[derive(Debug, Clone, Copy)]
pub struct Sequence {
    /// Which session.
    pub session: SessionId,
    /// The request's number in its slot.
    pub seqid: u32,
    /// The slot.
    pub slot: u32,
    /// The highest slot in use.
    pub highest_slot: u32,
    /// Whether the answer must be kept.
    pub cache_this: bool,
    /// Operations of the COMPOUND, this one among them.
    pub operations: u32,
    /// How long the request is, in bytes from the RPC header on.
    pub request_bytes: usize,
    /// A hash of who asks and of the whole COMPOUND: by it a retry is told from another request.
    pub digest: u64,
    /// The connection on which it came.
    pub connection: ConnectionId,
    /// Where that comes from.
    pub origin: Origin,
}

/// The results of SEQUENCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceAnswer {
    /// Which session.
    pub session: SessionId,
    /// The request's number in its slot.
    pub seqid: u32,
    /// The slot.
    pub slot: u32,
    /// The highest slot there is.
    pub highest_slot: u32,
    /// The highest slot the client should use.
    pub target_highest_slot: u32,
    /// What the client must know.
    pub status: StatusFlags,
}

/// `sr_status_flags`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusFlags(pub u32);

impl StatusFlags {
    /// No callback channel of the client works.
    pub const CB_PATH_DOWN: Self = Self(0x1);
    /// All state was lost with the lease.
    pub const EXPIRED_ALL_STATE_REVOKED: Self = Self(0x8);
    /// State was taken away by an administrator.
    pub const ADMIN_STATE_REVOKED: Self = Self(0x20);
    /// A delegation was revoked, and not yet freed by the client.
    pub const RECALLABLE_STATE_REVOKED: Self = Self(0x40);
    /// The session has no callback channel that works.
    pub const CB_PATH_DOWN_SESSION: Self = Self(0x200);
    /// Something is wrong with the back channel.
    pub const BACKCHANNEL_FAULT: Self = Self(0x400);

    fn when(self, holds: bool) -> Self {
        if holds { self } else { Self::default() }
    }
}

impl BitOr for StatusFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a SEQUENCE comes to.
#[derive(Debug)]
pub enum Sequenced {
    /// The request is new, and SEQUENCE answered as the ticket says ([`Ticket::answer`]). What is
    /// answered to all of it must be told to the ticket.
    New(Ticket),
    /// It was done: this was the answer to the whole COMPOUND.
    Again(Arc<[u8]>),
    /// It was done, and its answer not kept: SEQUENCE is answered so, and the next operation with
    /// `RETRY_UNCACHED_REP`.
    Forgotten(SequenceAnswer),
}

/// A slot while a request of it is worked on. Dropped without an answer it forgets the request.
#[derive(Debug)]
pub struct Ticket {
    session: Arc<Session>,
    answer: SequenceAnswer,
    cache_this: bool,
    open: bool,
}

impl Ticket {
    /// The session.
    #[must_use]
    pub const fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Whose it is.
    #[must_use]
    pub fn client(&self) -> &Arc<Client> {
        &self.session.client
    }

    /// What was answered to its SEQUENCE.
    #[must_use]
    pub const fn answer(&self) -> &SequenceAnswer {
        &self.answer
    }

    /// Whether the client wants the answer kept; one above
    /// [`super::ChannelAttrs::response_cached_bytes_max`] must be refused before it is carried out
    /// (`NFS4ERR_REP_TOO_BIG_TO_CACHE`).
    #[must_use]
    pub const fn cache_this(&self) -> bool {
        self.cache_this
    }

    /// Ends the request. `reply` is the answer to the whole COMPOUND, from its status on, if it is
    /// at hand in one piece; it is kept if the client asked for it, or if it is small.
    pub fn answered(mut self, reply: Option<&[u8]>) {
        let cached_max = self.session.fore.response_cached_bytes_max as usize;
        let bytes_max = if self.cache_this { cached_max } else { SMALL_REPLY_BYTES_MAX };
        let kept = reply.filter(|reply| reply.len() <= bytes_max.min(cached_max));
        self.open = false;
        self.session.channels().slots.end(self.answer.slot, kept, self.answer);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.session.channels().slots.end(self.answer.slot, None, self.answer);
        }
    }
}

impl Engine {
    /// SEQUENCE. Renews the lease.
    ///
    /// # Errors
    /// [`Error::BadSession`], [`Error::BadSlot`], [`Error::BadHighSlot`], [`Error::SeqMisordered`],
    /// [`Error::SeqFalseRetry`]; [`Error::ReqTooBig`], [`Error::TooManyOps`]: more than was agreed
    /// on; [`Error::Delay`]: the request is being worked on; [`Error::ConnNotBound`]: the
    /// connection comes from elsewhere than the client, whose principal has not bound it to the
    /// session.
    pub fn sequence(&self, now: Duration, args: &Sequence) -> Result<Sequenced> {
        let session = self.session(&args.session).ok_or(Error::BadSession)?;
        // What is refused must leave its slot alone (RFC 8881, 18.46.3).
        args.keep_to(&session.fore)?;
        let mut channels = session.channels();
        let Channels { slots, back } = &mut *channels;
        let is_bound = back.connections.has(args.connection);
        if !is_bound && session.client.origin() != args.origin {
            return Err(Error::ConnNotBound);
        }
        match slots.begin(args)? {
            Found::Again(reply) => {
                self.tally.replies_again.add(1);
                return Ok(Sequenced::Again(reply));
            }
            Found::Forgotten(answer) => {
                self.tally.replies_again.add(1);
                return Ok(Sequenced::Forgotten(answer));
            }
            Found::New(knew) => {
                if slots.adapt(self.replies(&session.client), args, knew) {
                    self.tally.slot_recalls_heeded.add(1);
                }
            }
        }
        if !is_bound {
            back.connections.bind(args.connection, Direction::Fore);
        }
        let answer = SequenceAnswer {
            session: args.session,
            seqid: args.seqid,
            slot: args.slot,
            highest_slot: slots.len().saturating_sub(1),
            target_highest_slot: slots.target(),
            status: status(&session.client, back),
        };
        drop(channels);
        session.client.renew(now);
        let cache_this = args.cache_this;
        Ok(Sequenced::New(Ticket { session, answer, cache_this, open: true }))
    }
}

impl Sequence {
    fn keep_to(&self, agreed: &ChannelAttrs) -> Result<()> {
        if self.request_bytes > agreed.request_bytes_max as usize {
            return Err(Error::ReqTooBig);
        }
        if self.operations > agreed.operations_max { Err(Error::TooManyOps) } else { Ok(()) }
    }
}

/// What a client must know. It costs a look at three numbers: what is behind the client's lock is
/// not asked for with every request.
fn status(client: &Client, back: &Back) -> StatusFlags {
    let cut_off = back.is_cut_off();
    StatusFlags::CB_PATH_DOWN.when(client.lost_callbacks() || cut_off)
        | StatusFlags::CB_PATH_DOWN_SESSION.when(cut_off)
        | StatusFlags::BACKCHANNEL_FAULT.when(back.fault)
        | StatusFlags::RECALLABLE_STATE_REVOKED.when(client.has_revoked())
}
