//! SEQUENCE: a request gets its slot, or a retry gets the kept reply (RFC 8881, 18.46).

use std::sync::Arc;
use std::time::Duration;

use crate::channel::SlotAnswer;
use crate::limits::SMALL_REPLY_BYTES_MAX;
use crate::session::{Back, Channels};
use crate::{
    Client, Direction, Engine, Error, Result, Sequence, SequenceAnswer, Session, StatusFlags,
};

/// The outcome of SEQUENCE.
#[derive(Debug)]
pub enum Sequenced {
    /// The request is new. [`Ticket::answer`] is the result of its SEQUENCE. The reply to the
    /// COMPOUND must be given to [`Ticket::answered`].
    New(Ticket),
    /// The request repeats the last one of its slot, which had this reply to the whole COMPOUND.
    Again(Arc<[u8]>),
    /// The request repeats the last one of its slot, whose reply was not kept. SEQUENCE gets this
    /// result, and the next operation `RETRY_UNCACHED_REP`.
    Forgotten(SequenceAnswer),
}

/// A slot whose request is under way. If this is dropped without a reply, the slot forgets the
/// request.
#[derive(Debug)]
pub struct Ticket {
    session: Arc<Session>,
    answer: SequenceAnswer,
    cache_this: bool,
    open: bool,
}

impl Ticket {
    /// Returns the session.
    #[must_use]
    pub const fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Returns the client of the session.
    #[must_use]
    pub fn client(&self) -> &Arc<Client> {
        &self.session.client
    }

    /// Returns the result of its SEQUENCE.
    #[must_use]
    pub const fn answer(&self) -> &SequenceAnswer {
        &self.answer
    }

    /// Returns whether the client asked for the reply to be kept. A request whose reply would be
    /// longer than [`crate::ChannelAttrs::response_cached_bytes_max`] must be refused before it is
    /// executed (`NFS4ERR_REP_TOO_BIG_TO_CACHE`).
    #[must_use]
    pub const fn cache_this(&self) -> bool {
        self.cache_this
    }

    /// Ends the request. `reply` is the reply to the whole COMPOUND, from its status on, if it is
    /// contiguous in memory. It is kept if the client asked for that, or if it is small.
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
    /// SEQUENCE. It renews the lease.
    ///
    /// # Errors
    /// [`Error::BadSession`], [`Error::BadSlot`], [`Error::BadHighSlot`], [`Error::SeqMisordered`],
    /// [`Error::SeqFalseRetry`]. [`Error::ReqTooBig`], [`Error::TooManyOps`]: the request exceeds
    /// the session's attributes. [`Error::Delay`]: the request is being executed.
    /// [`Error::ConnNotBound`]: the connection comes from another origin than the client, and the
    /// client's principal has not bound it to the session.
    pub fn sequence(&self, now: Duration, args: &Sequence) -> Result<Sequenced> {
        let session = self.session(&args.session).ok_or(Error::BadSession)?;
        // A refused request must not change its slot (RFC 8881, 18.46.3).
        args.keep_to(&session.fore)?;
        let mut channels = session.channels();
        let Channels { slots, back, .. } = &mut *channels;
        let is_bound = back.connections.has(args.connection);
        if !is_bound && session.client.origin() != args.origin {
            return Err(Error::ConnNotBound);
        }
        match slots.begin(args)? {
            SlotAnswer::Again(reply) => {
                self.counters.replies_again.add(1);
                return Ok(Sequenced::Again(reply));
            }
            SlotAnswer::Forgotten(answer) => {
                self.counters.replies_again.add(1);
                return Ok(Sequenced::Forgotten(answer));
            }
            SlotAnswer::New(knew) => {
                if slots.adapt(self.replies(&session.client), args, knew) {
                    self.counters.slot_recalls_heeded.add(1);
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
            status: status(now, &session.client, back),
        };
        drop(channels);
        session.client.renew(now);
        let cache_this = args.cache_this;
        Ok(Sequenced::New(Ticket { session, answer, cache_this, open: true }))
    }
}

/// Returns the status flags for a client. It reads four atomics, and does not take the client's
/// lock for every request.
fn status(now: Duration, client: &Client, back: &Back) -> StatusFlags {
    let cut_off = back.is_cut_off();
    StatusFlags::CB_PATH_DOWN.when(client.lost_callbacks() || cut_off)
        | StatusFlags::CB_PATH_DOWN_SESSION.when(cut_off)
        | StatusFlags::BACKCHANNEL_FAULT.when(back.fault)
        | client.tell_revoked(now)
        | client.tell_moved()
}
