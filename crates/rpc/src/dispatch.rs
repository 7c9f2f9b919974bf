use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_xdr::{Encoder, RecordStart};

use crate::{
    Admission, AuthStat, Call, CallHeader, Deferred, Done, Flavor, Gate, GateRefusal, OpaqueAuth,
    Outcome, Program, Repeat, ReplayCache, ReplayKey, ReplyVerifier, Ticket, Unparsed, Verdict,
    accepted, denied,
};

/// The number of the procedure NULL, the same in every program (RFC 5531, 12.1).
const NULL: u32 = 0;

/// The programs of a server, the gate before them, and the replay cache.
pub struct Dispatcher<V: ?Sized, G> {
    programs: Vec<Offered<V>>,
    gate: G,
    replay: ReplayCache,
    repeats: AtomicU64,
}

/// A program, with the number and the versions that each call is compared with.
struct Offered<V: ?Sized> {
    number: u32,
    version_min: u32,
    version_max: u32,
    program: Arc<dyn Program<V>>,
}

impl<V: ?Sized> From<Arc<dyn Program<V>>> for Offered<V> {
    fn from(program: Arc<dyn Program<V>>) -> Self {
        let (version_min, version_max) = program.versions().into_inner();
        Self { number: program.number(), version_min, version_max, program }
    }
}

/// The outcome of a record.
pub enum Answered<'a> {
    /// The reply, a whole record, was appended.
    Now,
    /// The reply follows with [`Late::finish`].
    Later(Late<'a>),
    /// The call gets no reply.
    Never,
    /// The gate refused the peer. The reply, a whole record, was appended.
    Refused(GateRefusal),
    /// The gate does not know the peer yet, and the call was not begun. The caller should pass the
    /// same record again later, or drop it if the transport makes the client send it again.
    Undecided,
    /// The peer asked for TLS and may begin it: a TLS handshake follows this reply on the
    /// connection. The reply, a whole record, was appended.
    StartTls,
}

/// Why a connection must be closed: the peer does not send RPC messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Hangup(#[from] pub Unparsed);

/// A reply that waits for slow work.
pub struct Late<'a> {
    xid: u32,
    verifier: ReplyVerifier,
    deferred: Box<dyn Deferred>,
    ticket: Option<Ticket<'a>>,
}

impl<V: ?Sized, G: Gate<V>> Dispatcher<V, G> {
    /// Makes a dispatcher that offers these programs to the peers that `gate` admits, and procedure
    /// NULL to everybody.
    #[must_use]
    pub fn new(programs: Vec<Arc<dyn Program<V>>>, gate: G) -> Self {
        let programs = programs.into_iter().map(Offered::from).collect();
        Self { programs, gate, replay: ReplayCache::default(), repeats: AtomicU64::new(0) }
    }

    /// Offers one more program.
    pub fn add(&mut self, program: Arc<dyn Program<V>>) {
        self.programs.push(program.into());
    }

    /// Returns the number of calls that were recognized as sent again and not executed twice.
    pub fn repeats(&self) -> u64 {
        self.repeats.load(Ordering::Relaxed)
    }

    /// Sets the time to `seconds`, counted from any beginning; it must be called about once a
    /// second.
    pub fn tick(&self, seconds: u32) {
        self.replay.tick(seconds);
    }

    /// Asks the gate why it refused a peer, for the log.
    pub fn refusal_reason(&self, visitor: &V, refusal: GateRefusal) -> String {
        self.gate.refusal_reason(visitor, refusal)
    }

    /// Asks the gate whether a peer may call more than NULL.
    pub fn admission(&self, visitor: &V) -> Admission {
        self.gate.admits(visitor)
    }

    /// Answers one record from `peer`: appends a whole record, or nothing, to `replies`.
    ///
    /// # Errors
    /// [`Hangup`] if the record is not a call.
    pub fn answer(
        &self,
        record: &[u8],
        peer: IpAddr,
        visitor: &V,
        replies: &mut Encoder,
    ) -> Result<Answered<'_>, Hangup> {
        let call = match Call::parse(record) {
            Ok(call) => call,
            Err(unparsed) => return refuse(unparsed, replies),
        };
        let header = &call.header;
        if header.procedure == NULL {
            if header.credential.flavor == Flavor::TLS {
                return Ok(self.probe(&call, visitor, replies));
            }
        } else {
            match self.gate.admits_call(visitor, header) {
                Admission::Admitted => {}
                Admission::Refused(why) => {
                    let refusal = GateRefusal { program: header.program, why };
                    return Ok(shut(replies, header.xid, refusal));
                }
                Admission::Undecided => return Ok(Answered::Undecided),
            }
        }
        let verifier = self.gate.reply_verifier(header, visitor);
        let Some(program) = self.program(header) else {
            return Ok(self.unavailable(header, &verifier, replies));
        };
        let ticket = match program.repeat_of(&call) {
            Repeat::Harmless => None,
            Repeat::Remember => {
                let key = ReplayKey::new(peer, header.xid, record);
                match self.replay.begin(key.proved(self.gate.proof_of(visitor))) {
                    Verdict::New(ticket) => Some(ticket),
                    repeat => {
                        self.repeats.fetch_add(1, Ordering::Relaxed);
                        return Ok(again(&repeat, replies));
                    }
                }
            }
        };
        Ok(perform(program, (&call, verifier), visitor, ticket, replies))
    }

    /// Answers a probe for TLS (RFC 9289, 4.1): the verifier of the reply is STARTTLS. If TLS is
    /// not available, the credential is refused, and the client may continue without TLS.
    #[cold]
    fn probe(&self, call: &Call<'_>, visitor: &V, replies: &mut Encoder) -> Answered<'_> {
        let header = &call.header;
        let is_empty = header.credential.body.0.is_empty() && header.verifier == OpaqueAuth::NONE;
        if !is_empty || !self.gate.starts_tls(visitor) {
            framed(replies, |reply| denied::auth_error(reply, header.xid, AuthStat::BadCred));
            return Answered::Now;
        }
        if self.program(header).is_none() {
            return self.unavailable(header, &ReplyVerifier::Empty, replies);
        }
        framed(replies, |reply| accepted::start_tls(reply, header.xid));
        Answered::StartTls
    }

    /// Returns the program of a call, if it is offered in that version.
    #[inline]
    fn program(&self, header: &CallHeader<'_>) -> Option<&dyn Program<V>> {
        let is_it = |offered: &&Offered<V>| {
            let versions = offered.version_min..=offered.version_max;
            offered.number == header.program && versions.contains(&header.version)
        };
        self.programs.iter().find(is_it).map(|offered| &*offered.program)
    }

    /// Answers a call of a program that is not offered, or not in that version.
    #[cold]
    fn unavailable(
        &self,
        header: &CallHeader<'_>,
        verifier: &ReplyVerifier,
        replies: &mut Encoder,
    ) -> Answered<'_> {
        // One number may be several programs', each with versions of its own.
        let named = || self.programs.iter().filter(|it| it.number == header.program);
        let low = named().map(|it| it.version_min).min();
        let high = named().map(|it| it.version_max).max();
        framed(replies, |reply| match low.zip(high) {
            Some((low, high)) => accepted::prog_mismatch(reply, header.xid, verifier, low, high),
            None => accepted::prog_unavail(reply, header.xid, verifier),
        });
        Answered::Now
    }
}

impl Late<'_> {
    /// Does the slow work and appends the reply, a whole record.
    pub fn finish(self, replies: &mut Encoder) -> Done {
        let start = begin(replies, self.xid, &self.verifier);
        let done = self.deferred.finish(replies);
        end(replies, start, self.ticket);
        done
    }
}

fn perform<'a, V: ?Sized>(
    program: &dyn Program<V>,
    (call, verifier): (&Call<'_>, ReplyVerifier),
    visitor: &V,
    ticket: Option<Ticket<'a>>,
    replies: &mut Encoder,
) -> Answered<'a> {
    let xid = call.header.xid;
    let start = begin(replies, xid, &verifier);
    let checkpoint = start.checkpoint();
    match program.call(call, visitor, replies) {
        Outcome::Done(_) => {
            end(replies, start, ticket);
            return Answered::Now;
        }
        Outcome::Deferred(deferred) => {
            replies.rollback(checkpoint);
            return Answered::Later(Late { xid, verifier, deferred, ticket });
        }
        Outcome::Silence => {
            replies.rollback(checkpoint);
            return Answered::Never;
        }
        failure => {
            replies.rollback(checkpoint);
            framed(replies, |reply| fail(reply, (xid, &verifier), &failure));
        }
    }
    Answered::Now
}

/// Replies to a call that was sent again.
fn again<'a>(verdict: &Verdict<'_>, replies: &mut Encoder) -> Answered<'a> {
    let Verdict::Answered(answer) = verdict else { return Answered::Never };
    replies.raw(answer);
    Answered::Now
}

/// Refuses a peer at the gate.
#[cold]
fn shut<'a>(replies: &mut Encoder, xid: u32, refusal: GateRefusal) -> Answered<'a> {
    framed(replies, |reply| denied::auth_error(reply, xid, refusal.why));
    Answered::Refused(refusal)
}

fn fail(reply: &mut Encoder, (xid, verifier): (u32, &ReplyVerifier), failure: &Outcome) {
    match failure {
        Outcome::ProcUnavail => accepted::proc_unavail(reply, xid, verifier),
        Outcome::GarbageArgs => accepted::garbage_args(reply, xid, verifier),
        Outcome::Denied(why) => denied::auth_error(reply, xid, *why),
        _ => accepted::system_err(reply, xid, verifier),
    }
}

fn refuse<'a>(unparsed: Unparsed, replies: &mut Encoder) -> Result<Answered<'a>, Hangup> {
    match unparsed {
        Unparsed::NotACall => return Err(Hangup(unparsed)),
        Unparsed::RpcVersion { xid, .. } => {
            framed(replies, |reply| denied::rpc_mismatch(reply, xid));
        }
        Unparsed::Header { xid, .. } => {
            framed(replies, |reply| {
                accepted::garbage_args(reply, xid, &ReplyVerifier::Empty);
            });
        }
    }
    Ok(Answered::Now)
}

fn begin(replies: &mut Encoder, xid: u32, verifier: &ReplyVerifier) -> RecordStart {
    let start = replies.begin_record();
    accepted::success(replies, xid, verifier);
    start
}

fn end(replies: &mut Encoder, start: RecordStart, ticket: Option<Ticket<'_>>) {
    let checkpoint = start.checkpoint();
    replies.end_record(start);
    if let Some(ticket) = ticket
        && let Some(answer) = replies.contiguous_since(checkpoint)
    {
        ticket.answered(answer);
    }
}

fn framed(replies: &mut Encoder, write: impl FnOnce(&mut Encoder)) {
    let start = replies.begin_record();
    write(replies);
    replies.end_record(start);
}
