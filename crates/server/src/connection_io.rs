//! The turn of one connection: receives the bytes that are there, answers them, sends the replies.

mod handshake;

use std::any::Any;
use std::net::SocketAddr;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use comity_rpc::{Answered, Late, RecordLimits, ReplyVerifier, Scan, accepted, next_record};
use comity_xdr::Encoder;
use rustix::io::Errno;

use crate::close_reason::CloseReason;
use crate::connection::Connection;
use crate::counters::LoopCounters;
use crate::event_loop::After;
use crate::handoff::{HandedOff, Handoff, HeldConnection};
use crate::limits::{
    BATCH_BYTES, LATES_MAX, PASSES_MAX, RECORD_BYTES_MAX, REPLY_BYTES_KEPT, SEND_BYTES,
};
use crate::log_rate_limit::LogRateLimit;
use crate::memory_budget::{Charge, LARGE_BYTES};
use crate::metrics::{forget_time, take_service_nanoseconds};
use crate::receive_buffer::{Large, ReceiveBuffer};
use crate::reply_writer::{Backlog, Outgoing, Progress};
use crate::service::Service;
use crate::shared::SharedState;
use crate::transport::Transport;

const LIMITS: RecordLimits = RecordLimits { bytes_max: RECORD_BYTES_MAX };

/// Bytes kept from earlier turns, less than three batches, and a new batch must fit into a worker's
/// buffer.
const _: () = assert!(LARGE_BYTES >= 4 * BATCH_BYTES);

/// The slow half of a call, and the xid of its reply.
pub(crate) struct Pending<'a> {
    xid: u32,
    late: Late<'a>,
}

/// A connection while it is being served.
pub(crate) struct ConnectionIo<'t, 'a, S: Service> {
    pub(crate) shared: &'a SharedState<S>,
    pub(crate) counters: &'t LoopCounters,
    pub(crate) handoff: &'t Handoff<S::Visitor>,
    pub(crate) replies: &'t mut Encoder,
    pub(crate) token: usize,
    pub(crate) visitor: Arc<S::Visitor>,
    pub(crate) connection: HeldConnection<S::Visitor>,
    pub(crate) lates: &'t mut Vec<Pending<'a>>,
}

/// A connection, and the outcome of its turn.
type Settled<V> = (Box<Connection<V>>, Result<After, CloseReason>);

/// The state of a connection after its turn.
pub(crate) enum Served<V> {
    /// The connection belongs to this thread.
    Here(Box<Connection<V>>, Result<After, CloseReason>),
    /// Other threads serve it; replies must still be sent to it.
    HandedOff(HandedOff),
}

/// Why a turn ends early.
pub(crate) enum Stop {
    /// The connection ends.
    Ended(CloseReason),
    /// Other threads serve the connection.
    HandedOff(HandedOff),
    /// A TLS handshake follows.
    StartTls,
}

impl<F: Into<CloseReason>> From<F> for Stop {
    fn from(reason: F) -> Self {
        Self::Ended(reason.into())
    }
}

/// The bytes of a buffer that were answered, and the bytes needed before more can be answered.
struct Cut {
    used: usize,
    needed: usize,
    /// True if records were left, because replies wait or too many calls are pending.
    stopped: bool,
}

/// The bytes that may be received at once, and the charge for them meanwhile.
struct Room {
    bytes: usize,
    _charge: Option<Charge>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Socket {
    Empty,
    MayHaveMore,
}

impl<S: Service> ConnectionIo<'_, '_, S> {
    /// Serves until the socket is empty, takes no more replies, or other connections should have
    /// their turn.
    pub(crate) fn serve(mut self) -> Served<S::Visitor> {
        let served = match self.passes() {
            Ok(after) => Ok(after),
            Err(Stop::HandedOff(handed_off)) => return Served::HandedOff(handed_off),
            Err(Stop::StartTls) => self.begin_tls(),
            Err(Stop::Ended(reason)) => self.end(reason),
        };
        match self.connection.into_connection() {
            Some(connection) => Served::Here(connection, served),
            None => unreachable!("a turn that lent its connection says so"),
        }
    }

    fn end(&mut self, reason: CloseReason) -> Result<After, CloseReason> {
        // Replies to calls that came before the peer's error are still sent.
        let _ = self.send();
        match reason {
            // The end is handled after the pending slow halves; it will be met again then.
            CloseReason::Closed if !self.lates.is_empty() => Ok(After::Again),
            // Other threads also execute calls of the connection; they will return it to this loop.
            CloseReason::Closed if self.connection.away > 0 => Ok(After::Wait),
            reason => Err(reason),
        }
    }

    /// Checks again, once a second, whether something is offered to a peer of which this was
    /// unknown: the check reads all exports.
    fn list(&mut self) {
        let now = Some(self.shared.seconds());
        if self.connection.place.is_listed() || self.connection.judged == now {
            return;
        }
        self.connection.judged = now;
        if self.shared.service.lists(self.connection.peer.ip()) {
            self.connection.place.list();
        }
    }

    fn passes(&mut self) -> Result<After, Stop> {
        if !self.send_backlog()? {
            return Ok(After::Wait);
        }
        if let Some(after) = self.shake_hands()? {
            return Ok(after);
        }
        self.connection.call_back.backchannel.take_into(self.replies);
        let Connection { place, call_back, .. } = &*self.connection;
        if place.account.sleepers.postpone(&call_back.backchannel, self.shared.sleepers_max()) {
            // Bytes that have arrived stay in the socket until a call of this client is done.
            self.send()?;
            return Ok(After::Wait);
        }
        self.list();
        if self.rests() {
            self.send()?;
            return Ok(After::Starved);
        }
        for _ in 0..PASSES_MAX {
            let (socket, fed) = match std::mem::take(&mut self.connection.received) {
                ReceiveBuffer::Large(large) => self.receive_large(large)?,
                received => {
                    self.connection.received = received;
                    self.receive_batch()?
                }
            };
            self.send()?;
            if self.connection.backlog.is_some() {
                return Ok(After::Wait);
            }
            if !fed || self.connection.undecided || self.rests() {
                return Ok(After::Starved);
            }
            if self.lates.len() >= LATES_MAX {
                return Ok(After::Again);
            }
            if socket == Socket::Empty && !self.connection.stopped {
                return Ok(After::Wait);
            }
        }
        Ok(After::Again)
    }

    /// Executes the slow halves and sends their replies, if the connection was `served` without
    /// error so far. After an error they are executed all the same: the reply of a half-executed
    /// call would not be remembered, and a retry would be executed twice.
    pub(crate) fn finish_lates(
        mut self,
        mut served: Result<After, CloseReason>,
    ) -> Option<Settled<S::Visitor>> {
        for pending in std::mem::take(self.lates) {
            pending.finish(self.connection.peer, self.replies, self.counters);
            self.connection.place.usage.add_service(take_service_nanoseconds());
            if self.replies_bytes() >= SEND_BYTES {
                served = self.send_if(served);
            }
        }
        served = self.send_if(served);
        self.connection.into_connection().map(|connection| (connection, served))
    }

    /// Sends the replies, or drops them if the connection has ended.
    fn send_if(&mut self, served: Result<After, CloseReason>) -> Result<After, CloseReason> {
        match served {
            Ok(after) => self.send().map(|()| after),
            Err(reason) => {
                self.replies.clear(REPLY_BYTES_KEPT);
                Err(reason)
            }
        }
    }

    /// Receives one batch of small records into the thread's buffer and answers them.
    fn receive_batch(&mut self) -> Result<(Socket, bool), Stop> {
        let mut buffer = self.handoff.buffer.borrow_mut();
        let kept = self.connection.received.unload(&mut buffer);
        let looked_at = !std::mem::take(&mut self.connection.stopped);
        let room = self.room();
        let (received, socket) = if looked_at {
            let end = buffer.len().min(kept + room.bytes);
            self.receive(&mut buffer[kept..end])?
        } else {
            (0, Socket::MayHaveMore)
        };
        drop((buffer, room));
        let filled = kept + received;
        let cut = self.answer_all(filled)?;
        let fed = self.keep(filled, &cut)?;
        Ok((socket, fed))
    }

    /// Returns the room for the next bytes. After a long record it is more than a batch, since
    /// another long one is likely and then is received in one piece, if there is memory for an
    /// incomplete one.
    fn room(&self) -> Room {
        let Connection { large, place, .. } = &*self.connection;
        let charge = large.and_then(|_| place.account.charge(LARGE_BYTES));
        let bytes = large.filter(|_| charge.is_some()).unwrap_or(BATCH_BYTES);
        Room { bytes, _charge: charge }
    }

    /// Receives a large record. It is also answered from the thread's buffer, with which it swaps
    /// memory.
    fn receive_large(&mut self, mut large: Box<Large>) -> Result<(Socket, bool), Stop> {
        let (received, socket) = if std::mem::take(&mut self.connection.stopped) {
            (0, Socket::MayHaveMore)
        } else {
            self.receive(large.room())?
        };
        large.filled += received;
        if large.filled < large.needed {
            self.connection.received = ReceiveBuffer::Large(large);
            return Ok((socket, true));
        }
        let (handoff, filled) = (self.handoff, large.filled);
        large.buffer.trade(&mut handoff.buffer.borrow_mut());
        let cut = self.answer_all(filled)?;
        if cut.used == 0 {
            large.buffer.trade(&mut handoff.buffer.borrow_mut());
            if !cut.stopped {
                large.fragments = true;
                large.needed = cut.needed;
            }
            self.connection.stopped = cut.stopped;
            self.connection.received = ReceiveBuffer::Large(large);
            return Ok((socket, true));
        }
        drop(large);
        let fed = self.keep(filled, &cut)?;
        Ok((socket, fed))
    }

    /// Keeps the unanswered part of the `filled` bytes of the buffer; `false` if there is no memory
    /// to receive more of it.
    fn keep(&mut self, filled: usize, cut: &Cut) -> Result<bool, CloseReason> {
        let rest = cut.used..filled;
        if rest.is_empty() && !cut.stopped {
            self.connection.rests(self.shared.seconds(), cut.used > 0);
            return Ok(true);
        }
        let Connection { received, place, .. } = &mut *self.connection;
        let mut buffer = self.handoff.buffer.borrow_mut();
        let fed = received.keep(&mut buffer, rest, cut.needed, &place.account)?;
        self.connection.stopped = cut.stopped || !fed;
        self.connection.rests(self.shared.seconds(), cut.used > 0);
        Ok(fed || cut.stopped)
    }

    fn receive(&mut self, room: &mut [u8]) -> Result<(usize, Socket), CloseReason> {
        let wanted = room.len();
        loop {
            self.counters.receives.add(1);
            match self.connection.stream.receive(room) {
                Ok(0) => return Err(CloseReason::Closed),
                Ok(received) => {
                    forget_time();
                    self.counters.received_bytes.add(received as u64);
                    self.connection.place.usage.add_received(received as u64);
                    self.connection.heard(self.shared.seconds());
                    self.connection.note_service(self.shared.seconds());
                    // A short receive has emptied the socket, and the next byte will be reported.
                    // An end that was reported already is not reported again, so it must be read
                    // here.
                    let Connection { stream, hung_up, .. } = &*self.connection;
                    let all = received < wanted && !hung_up && !stream.has_received();
                    let socket = if all { Socket::Empty } else { Socket::MayHaveMore };
                    return Ok((received, socket));
                }
                Err(Errno::AGAIN) => return Ok((0, Socket::Empty)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.connection.failure(error)),
            }
        }
    }

    /// Answers the records at the front of the `filled` bytes of the buffer.
    fn answer_all(&mut self, filled: usize) -> Result<Cut, Stop> {
        let mut used = 0;
        loop {
            let is_full = self.connection.backlog.is_some() || self.lates.len() >= LATES_MAX;
            if is_full && used < filled {
                return Ok(Cut { used, needed: 0, stopped: true });
            }
            let scan = next_record(&mut self.handoff.buffer.borrow_mut()[used..filled], &LIMITS)?;
            match scan {
                Scan::Partial { bytes_needed } => {
                    return Ok(Cut { used, needed: bytes_needed, stopped: false });
                }
                Scan::Record { body, end } => {
                    self.connection.large = Some(end).filter(|end| *end > BATCH_BYTES);
                    self.answer(used + body.start..used + body.end, used + end..filled)?;
                    if self.connection.undecided {
                        return Ok(Cut { used, needed: end, stopped: true });
                    }
                    used += end;
                    if self.rests() {
                        return Ok(Cut { used, needed: 0, stopped: true });
                    }
                }
            }
            if self.replies_bytes() >= SEND_BYTES {
                self.send()?;
            }
        }
    }

    /// Returns whether an unlisted peer was served in this second. It may call NULL, but neither
    /// calls nor incomplete records of it may delay other peers.
    fn rests(&self) -> bool {
        let Connection { place, served_second, .. } = &*self.connection;
        place.is_held_back() && *served_second == Some(self.shared.seconds())
    }

    /// Answers a record, unless its peer is undecided; `rest` is the position of the bytes after
    /// it.
    fn answer(&mut self, body: Range<usize>, rest: Range<usize>) -> Result<(), Stop> {
        self.counters.records.add(1);
        self.connection.place.usage.add_record();
        self.refresh_visitor();
        let buffer = self.handoff.buffer.borrow();
        let (record, shared, peer) = (&buffer[body], self.shared, self.connection.peer);
        let (service, visitor) = (&shared.service, &*self.visitor);
        let checkpoint = self.replies.checkpoint();
        let replies = &mut *self.replies;
        let (mut answered, is_last) = (None, rest.is_empty());
        let handed_off = self.handoff.run((self.token, &mut self.connection), rest, || {
            answered = Some(catch_unwind(AssertUnwindSafe(|| {
                service.dispatcher().answer(record, peer.ip(), visitor, replies)
            })));
        });
        let spent = take_service_nanoseconds();
        match &handed_off {
            None => {
                self.connection.place.usage.add_service(spent);
                self.connection.undecided = matches!(answered, Some(Ok(Ok(Answered::Undecided))));
                self.connection.note_service(self.shared.seconds());
            }
            Some(handed_off) => handed_off.add_service(spent),
        }
        match answered {
            Some(Ok(Ok(Answered::Now | Answered::Never | Answered::Undecided))) | None => {}
            Some(Ok(Ok(Answered::Refused(refusal)))) => {
                log_refused(peer, || service.dispatcher().refusal_reason(visitor, refusal));
            }
            Some(Ok(Ok(Answered::StartTls))) if is_last => return Err(Stop::StartTls),
            Some(Ok(Ok(Answered::StartTls))) => return Err(CloseReason::EarlyBytes.into()),
            Some(Ok(Ok(Answered::Later(late)))) => {
                self.lates.push(Pending { xid: xid(record), late });
            }
            Some(Ok(Err(_))) if service.heard(visitor, record) => {}
            Some(Ok(Err(hangup))) if handed_off.is_none() => return Err(hangup.into()),
            Some(Ok(Err(_))) => {}
            Some(Err(panic)) => {
                self.replies.rollback(checkpoint);
                answer_system_error((peer, xid(record)), &*panic, self.replies, self.counters);
            }
        }
        handed_off.map_or(Ok(()), |handed_off| Err(Stop::HandedOff(handed_off)))
    }

    /// Replaces the data about the peer if the service has newer data. Calls that have begun keep
    /// the old data.
    #[inline]
    fn refresh_visitor(&mut self) {
        if let Some(visitor) = self.shared.service.renewed_visitor(&self.visitor) {
            self.visitor = Arc::new(visitor);
            self.connection.visitor = Arc::clone(&self.visitor);
        }
    }

    fn replies_bytes(&self) -> usize {
        let replies = &*self.replies;
        let files = replies.files().iter().map(|file| file.length as usize);
        replies.bytes().len() + files.sum::<usize>()
    }

    /// Sends the collected replies; bytes that the peer does not take now are put in its backlog.
    pub(crate) fn send(&mut self) -> Result<(), CloseReason> {
        if self.replies.bytes().is_empty() {
            return Ok(());
        }
        let result = self.send_or_keep();
        self.replies.clear(REPLY_BYTES_KEPT);
        forget_time();
        result
    }

    fn send_or_keep(&mut self) -> Result<(), CloseReason> {
        self.counters.sends.add(1);
        let sent = self.replies_bytes() as u64;
        self.counters.sent_bytes.add(sent);
        self.connection.place.usage.add_sent(sent);
        let outgoing = Outgoing::of(self.replies);
        let mut progress = Progress::default();
        let connection = &mut *self.connection;
        let account = &connection.place.account;
        if let Some(backlog) = &mut connection.backlog {
            return backlog.append(outgoing, account);
        }
        if outgoing.send(&mut connection.stream, &mut progress)? {
            return Ok(());
        }
        self.counters.backlogs.add(1);
        connection.backlog = Some(Box::new(Backlog::new(outgoing, progress, account)?));
        connection.reads(self.shared.seconds());
        Ok(())
    }

    /// Sends the backlog; `false` if some of it is left.
    fn send_backlog(&mut self) -> Result<bool, CloseReason> {
        let connection = &mut *self.connection;
        let Some(mut backlog) = connection.backlog.take() else { return Ok(true) };
        let Some(moved) = backlog.send(&mut connection.stream)? else {
            connection.has_read();
            return Ok(true);
        };
        if moved {
            connection.reads(self.shared.seconds());
        } else {
            connection.waits(self.shared.seconds());
        }
        connection.backlog = Some(backlog);
        Ok(false)
    }
}

impl Pending<'_> {
    /// Executes the slow half, and appends the reply.
    pub(crate) fn finish(self, peer: SocketAddr, replies: &mut Encoder, counters: &LoopCounters) {
        let Self { xid, late } = self;
        let checkpoint = replies.checkpoint();
        let done = catch_unwind(AssertUnwindSafe(|| late.finish(replies)));
        if let Err(panic) = done {
            replies.rollback(checkpoint);
            answer_system_error((peer, xid), &*panic, replies, counters);
        }
        counters.lates.add(1);
    }
}

/// Logs that the gate refused a peer, and why.
#[cold]
pub(crate) fn log_refused(peer: SocketAddr, reason: impl FnOnce() -> String) {
    static LOG: LogRateLimit = LogRateLimit::new();
    LOG.say(|suppressed| {
        let reason = reason();
        tracing::warn!(%peer, reason, suppressed, "a call was refused");
    });
}

/// Answers a call whose program panicked with SYSTEM_ERR, and logs the panic.
fn answer_system_error(
    (peer, xid): (SocketAddr, u32),
    panic: &(dyn Any + Send),
    replies: &mut Encoder,
    counters: &LoopCounters,
) {
    static LOG: LogRateLimit = LogRateLimit::new();
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
    LOG.say(|suppressed| tracing::error!(%peer, xid, suppressed, "a call panicked: {text}"));
    counters.panics.add(1);
    let start = replies.begin_record();
    accepted::system_err(replies, xid, &ReplyVerifier::Empty);
    replies.end_record(start);
}

fn xid(record: &[u8]) -> u32 {
    record.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
