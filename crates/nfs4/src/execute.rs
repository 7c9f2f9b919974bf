//! COMPOUND: operations are decoded, executed and answered one after the other. The first failure
//! ends the COMPOUND (RFC 8881, 16.2).

use comity_credential::CredentialRef;
use comity_export::RpcPeer;
use comity_proto::nfs4::{CompoundHead, Nfsstat4, Stateid4, operation};
use comity_rpc::{Call, Done, Outcome};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::deferred_reply::{DeferredReply, PendingAnswer, PendingResult, ReplyPosition, Wait};
use crate::filehandle::Object;
use crate::limits::{CHANGING_REPLY_BYTES, OPERATIONS_MAX};
use crate::name::is_text;
use crate::ops::row;
use crate::program::Nfs4;
use crate::sequencing::Sequencing;
use crate::state_context::caller_of;
use crate::stop::Stop;
use crate::table::Row;
use crate::traits::Traits;

/// Answers a COMPOUND.
pub(crate) fn answer(
    nfs: &Nfs4,
    call: &Call<'_>,
    visitor: &RpcPeer,
    reply: &mut Encoder,
) -> Outcome {
    let mut args = Decoder::new(call.arguments);
    let Ok(head) = args.value::<CompoundHead<'_>>() else { return Outcome::GarbageArgs };
    let credential = CredentialRef::parse(&call.header.credential);
    let caller = match caller_of(visitor, &credential) {
        Ok(caller) => caller,
        Err(why) => return Outcome::Denied(why),
    };
    let (plan, clock) = (nfs.exports().current(), &nfs.memory().clock);
    let mut compound = Compound {
        nfs,
        plan: &plan,
        visitor,
        credential,
        caller,
        request: call.arguments,
        minor: head.minorversion,
        now: call.begun.map_or_else(|| clock.now(), |begun| clock.at(begun)),
        sequencing: Sequencing::of(head.minorversion),
        operation: operation::ILLEGAL,
        following: head.operations,
        current: None,
        saved: None,
        stateid: Stateid4::INVALID,
        saved_stateid: Stateid4::INVALID,
        placed: Vec::new(),
        lease_moved: None,
        start: reply.checkpoint(),
        pending_results: Vec::new(),
        barriers: Vec::new(),
        kept: None,
        pending_answers: Vec::new(),
    };
    compound.stream(&head, &mut args, reply)
}

/// The result of a COMPOUND.
struct End {
    status: Nfsstat4,
    results: u32,
}

impl<'a> Compound<'a> {
    fn stream(
        &mut self,
        head: &CompoundHead<'a>,
        args: &mut Decoder<'a>,
        reply: &mut Encoder,
    ) -> Outcome {
        let status = reply.word();
        reply.value(&head.tag);
        let count_at = reply.length_since(self.start);
        let count = reply.word();
        let end = match self.operations(head, args, reply) {
            Ok(end) => end,
            Err(answered) => {
                reply.rollback(self.start);
                reply.raw(&answered);
                return Outcome::Done(Done::default());
            }
        };
        reply.set(status, end.status as u32);
        reply.set(count, end.results);
        self.outcome(&end, count_at, reply)
    }

    /// Executes the operations.
    ///
    /// # Errors
    /// The kept reply, if this COMPOUND is a retry.
    fn operations(
        &mut self,
        head: &CompoundHead<'a>,
        args: &mut Decoder<'a>,
        reply: &mut Encoder,
    ) -> Result<End, Box<[u8]>> {
        if !self.nfs.versions().speaks(head.minorversion) {
            return Ok(End { status: Nfsstat4::MinorVersMismatch, results: 0 });
        }
        if !is_text(head.tag.0) {
            return Ok(End { status: Nfsstat4::Inval, results: 0 });
        }
        if head.operations > OPERATIONS_MAX {
            return Ok(End { status: self.sequencing.too_many(), results: 0 });
        }
        for at in 0..head.operations {
            let Ok(number) = args.value::<u32>() else {
                return Ok(self.unread(at, reply));
            };
            self.following = head.operations - at - 1;
            let status = self.operation(head, (at, number), args, reply)?;
            self.nfs.operation_counters().count(number, status == Nfsstat4::Ok);
            if status != Nfsstat4::Ok {
                return Ok(End { status, results: at + 1 });
            }
        }
        Ok(End { status: Nfsstat4::Ok, results: head.operations })
    }

    /// Appends a result for an operation whose number cannot be decoded. The status of a COMPOUND
    /// is that of its last result (RFC 8881, 16.2.4), so this operation needs one.
    fn unread(&self, at: u32, reply: &mut Encoder) -> End {
        let begin = reply.checkpoint();
        let status = Nfsstat4::BadXdr;
        reply.value(&operation::ILLEGAL);
        reply.value(&status);
        if reply.length_since(self.start) > self.sequencing.reply_bytes_max() {
            reply.rollback(begin);
            return End { status, results: at };
        }
        End { status, results: at + 1 }
    }

    /// Executes one operation and appends its result; returns its status.
    fn operation(
        &mut self,
        head: &CompoundHead<'a>,
        (at, number): (u32, u32),
        args: &mut Decoder<'a>,
        reply: &mut Encoder,
    ) -> Result<Nfsstat4, Box<[u8]>> {
        let begin = reply.checkpoint();
        let (row, known) = match row(number, self.minor) {
            Some(row) => (row, number),
            None => (&crate::ops::ILLEGAL, operation::ILLEGAL),
        };
        self.operation = known;
        let status = reply.word_behind(known);
        let body = reply.checkpoint();
        let said = match self.perform(head, at, row, args, reply) {
            Ok(()) => Nfsstat4::Ok,
            Err(Stop::Told(status)) => status,
            Err(Stop::Status(status)) => {
                reply.rollback(body);
                (0..row.failure_words).for_each(|_| reply.value(&0_u32));
                self.sequencing.spoken(status)
            }
            Err(Stop::Replay(answered)) => return Err(answered),
        };
        reply.set(status, said as u32);
        let too_long = reply.length_since(self.start) > self.sequencing.reply_bytes_max();
        if too_long && (said == Nfsstat4::Ok || reply.length_since(body) > 0) {
            reply.rollback(begin);
            return Ok(self.too_big(row, reply));
        }
        // Nearly all operations wait for nothing.
        if self.kept.is_some() || !self.barriers.is_empty() || self.nfs.memory().is_behind() {
            let status_at = body.since(self.start) - 4;
            self.promise(ReplyPosition {
                results: at + 1,
                status_at,
                failure_words: row.failure_words,
            });
        }
        Ok(said)
    }

    /// Replaces the operation's result by the failure that it would be too long.
    fn too_big(&self, row: &Row, reply: &mut Encoder) -> Nfsstat4 {
        let status = self.sequencing.too_big();
        reply.words([self.operation, status as u32]);
        (0..row.failure_words).for_each(|_| reply.value(&0_u32));
        status
    }

    /// Notes the barriers and records that the operation's result must wait for. If there are none,
    /// the reply to its owner is kept at once.
    #[cold]
    fn promise(&mut self, place: ReplyPosition) {
        let before = self.pending_results.len();
        let pending = |wait| PendingResult { wait, place };
        self.pending_results.extend(self.barriers.drain(..).map(Wait::Barrier).map(pending));
        self.pending_results.extend(self.nfs.memory().unstored().map(pending));
        match self.kept.take() {
            Some(kept) if self.pending_results.len() == before => kept.told(),
            Some(kept) => self.pending_answers.push(PendingAnswer { kept, results: place.results }),
            None => {}
        }
    }

    fn perform(
        &mut self,
        head: &CompoundHead<'a>,
        at: u32,
        row: &Row,
        args: &mut Decoder<'a>,
        reply: &mut Encoder,
    ) -> Result<(), Stop> {
        self.sequencing.admit(head, at, (row.number, row.traits))?;
        if self.minor > row.until {
            return Err(Nfsstat4::NotSupp.into());
        }
        if row.traits.has(Traits::NEEDS_HANDLE) && self.current.is_none() {
            return Err(Nfsstat4::NoFileHandle.into());
        }
        if row.traits.has(Traits::TELLS) && self.room(reply) < CHANGING_REPLY_BYTES {
            return Err(self.sequencing.too_big().into());
        }
        if row.traits.has(Traits::CHANGES) && matches!(self.current, Some(Object::Pseudo(_))) {
            return Err(Nfsstat4::RoFs.into());
        }
        match &self.current {
            Some(Object::In(view, _)) if view.is_by_layout() && !is_data_operation(row.number) => {
                return Err(Nfsstat4::Access.into());
            }
            Some(Object::Absent(_)) if is_about_object(row) => return Err(Nfsstat4::Moved.into()),
            _ => {}
        }
        (row.perform)(self, args, reply)
    }

    /// Returns the reply, either complete or deferred behind its barriers.
    fn outcome(&mut self, end: &End, count_at: usize, reply: &Encoder) -> Outcome {
        let done = Done { status: end.status as u32, export: self.export() };
        let ticket = self.sequencing.take_ticket();
        if self.pending_results.is_empty() {
            if let Some(ticket) = ticket {
                ticket.answered(reply.contiguous_since(self.start));
            }
            return Outcome::Done(done);
        }
        let Some(bytes) = reply.contiguous_since(self.start) else { return Outcome::SystemErr };
        let pending_results = std::mem::take(&mut self.pending_results);
        let pending_answers = std::mem::take(&mut self.pending_answers);
        Outcome::Deferred(Box::new(DeferredReply {
            done,
            pending_results,
            pending_answers,
            bytes: bytes.into(),
            count_at,
            ticket,
        }))
    }
}

/// Returns whether an operation needs the file system of the current handle to be present. GETATTR
/// alone tells something of an absent one (RFC 7530, 8.3; RFC 8881, 11.4).
const fn is_about_object(row: &Row) -> bool {
    row.traits.has(Traits::NEEDS_HANDLE) && row.number != operation::GETATTR
}

/// Returns whether a layout allows an operation on the file of the current handle, or whether the
/// operation leaves that file alone (RFC 8881, 13.6).
const fn is_data_operation(number: u32) -> bool {
    matches!(
        number,
        operation::READ
            | operation::WRITE
            | operation::COMMIT
            | operation::PUTFH
            | operation::PUTROOTFH
            | operation::PUTPUBFH
            | operation::SAVEFH
            | operation::RESTOREFH
            | operation::ILLEGAL
    )
}
