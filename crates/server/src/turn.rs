//! One connection's turn: receive what is there, answer it, send the replies.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use comity_rpc::{Answered, Late, RecordLimits, Scan, accepted, next_record};
use comity_xdr::Encoder;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::budget::LARGE_BYTES;
use crate::connection::Connection;
use crate::counters::DeskCounters;
use crate::farewell::Farewell;
use crate::floor::Floor;
use crate::inbox::{Inbox, Large};
use crate::limits::{
    BATCH_BYTES, LATES_MAX, PASSES_MAX, RECORD_BYTES_MAX, REPLY_BYTES_KEPT, SEND_BYTES,
};
use crate::metrics::forget_time;
use crate::post::After;
use crate::quiet::Quiet;
use crate::send::{Backlog, Outgoing, Progress};
use crate::service::Service;

const RECORD_LIMITS: RecordLimits = RecordLimits { bytes_max: RECORD_BYTES_MAX };

/// What was kept from turns before, less than two batches, and a new batch fit in a worker's
/// buffer.
const _: () = assert!(LARGE_BYTES >= 3 * BATCH_BYTES);

/// What a thread serves with; lent to one connection at a time.
pub(crate) struct Tools {
    buffer: Vec<u8>,
    replies: Encoder,
}

/// The slow half of a call, and under which number it is to be answered.
pub(crate) struct Pending<'a> {
    xid: u32,
    late: Late<'a>,
}

/// One connection while it is served.
pub(crate) struct Turn<'t, 'a, S: Service> {
    pub(crate) floor: &'a Floor<S>,
    pub(crate) counters: &'t DeskCounters,
    pub(crate) tools: &'t mut Tools,
    pub(crate) connection: &'t mut Connection<S::Visitor>,
    pub(crate) lates: &'t mut Vec<Pending<'a>>,
}

/// How many bytes of a buffer were answered, and how many there must be to answer more.
struct Cut {
    used: usize,
    needed: usize,
    /// Records were left, because replies wait or much is pending.
    stopped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Socket {
    Empty,
    MayHaveMore,
}

impl Tools {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; LARGE_BYTES], replies: Encoder::new() }
    }
}

impl<S: Service> Turn<'_, '_, S> {
    /// Serves until the socket is empty, takes no more replies, or others should have their turn.
    pub(crate) fn serve(&mut self) -> Result<After, Farewell> {
        let served = self.passes();
        if served.is_err() {
            // What was answered before the peer went wrong is its due.
            let _ = self.send();
        }
        match served {
            // So is what waits for a slow half; the end will be met again after that.
            Err(Farewell::Closed) if !self.lates.is_empty() => Ok(After::Again),
            served => served,
        }
    }

    fn passes(&mut self) -> Result<After, Farewell> {
        if !self.send_backlog()? {
            return Ok(After::Wait);
        }
        self.connection.call_back.line.take_into(&mut self.tools.replies);
        for _ in 0..PASSES_MAX {
            let (socket, fed) = match std::mem::take(&mut self.connection.inbox) {
                Inbox::Large(large) => self.receive_large(large)?,
                inbox => {
                    self.connection.inbox = inbox;
                    self.receive_batch()?
                }
            };
            self.send()?;
            if self.connection.backlog.is_some() {
                return Ok(After::Wait);
            }
            if !fed {
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

    /// Does the slow halves and sends their replies, if the connection was `served` well so far. If
    /// not they are done all the same: of a call half done the answer would not be remembered, and
    /// when sent again it would be done twice.
    pub(crate) fn finish_lates(
        &mut self,
        mut served: Result<After, Farewell>,
    ) -> Result<After, Farewell> {
        let lates = std::mem::take(self.lates);
        for Pending { xid, late } in lates {
            let replies = &mut self.tools.replies;
            let mark = replies.mark();
            let done = catch_unwind(AssertUnwindSafe(|| late.finish(replies)));
            if let Err(panic) = done {
                replies.rollback(mark);
                self.apologize(xid, &*panic);
            }
            self.counters.lates.add(1);
            if self.replies_bytes() >= SEND_BYTES {
                served = self.send_if(served);
            }
        }
        self.send_if(served)
    }

    /// Sends, or drops what would be sent if the connection has ended.
    fn send_if(&mut self, served: Result<After, Farewell>) -> Result<After, Farewell> {
        match served {
            Ok(after) => self.send().map(|()| after),
            Err(farewell) => {
                self.tools.replies.clear(REPLY_BYTES_KEPT);
                Err(farewell)
            }
        }
    }

    /// Receives one batch of small records into the thread's buffer and answers them.
    fn receive_batch(&mut self) -> Result<(Socket, bool), Farewell> {
        let mut buffer = std::mem::take(&mut self.tools.buffer);
        let result = self.batch_in(&mut buffer);
        self.tools.buffer = buffer;
        result
    }

    fn batch_in(&mut self, buffer: &mut Vec<u8>) -> Result<(Socket, bool), Farewell> {
        let kept = self.connection.inbox.unload(buffer);
        let looked_at = !std::mem::take(&mut self.connection.stopped);
        let (received, socket) = if looked_at {
            self.receive(&mut buffer[kept..kept + BATCH_BYTES])?
        } else {
            (0, Socket::MayHaveMore)
        };
        let filled = kept + received;
        let cut = self.answer_all(&mut buffer[..filled])?;
        let fed = self.keep(buffer, filled, &cut)?;
        Ok((socket, fed))
    }

    /// Receives a large record where it is answered from.
    fn receive_large(&mut self, mut large: Box<Large>) -> Result<(Socket, bool), Farewell> {
        let (received, socket) = if std::mem::take(&mut self.connection.stopped) {
            (0, Socket::MayHaveMore)
        } else {
            self.receive(large.room())?
        };
        large.filled += received;
        if large.filled < large.needed {
            self.connection.inbox = Inbox::Large(large);
            return Ok((socket, true));
        }
        let filled = large.filled;
        let cut = self.answer_all(&mut large.buffer.bytes()[..filled])?;
        if cut.used == 0 {
            if !cut.stopped {
                large.fragments = true;
                large.needed = cut.needed;
            }
            self.connection.stopped = cut.stopped;
            self.connection.inbox = Inbox::Large(large);
            return Ok((socket, true));
        }
        let fed = self.keep(large.buffer.bytes(), filled, &cut)?;
        Ok((socket, fed))
    }

    /// Keeps what was not answered of the `filled` bytes of a buffer; `false` if there is no memory
    /// to receive more of it.
    fn keep(&mut self, buffer: &mut Vec<u8>, filled: usize, cut: &Cut) -> Result<bool, Farewell> {
        let rest = cut.used..filled;
        if rest.is_empty() && !cut.stopped {
            self.connection.rests(self.floor.seconds(), cut.used > 0);
            return Ok(true);
        }
        let Connection { inbox, place, .. } = &mut *self.connection;
        let fed = inbox.keep(buffer, rest, cut.needed, &place.account)?;
        self.connection.stopped = cut.stopped || !fed;
        self.connection.rests(self.floor.seconds(), cut.used > 0);
        Ok(fed || cut.stopped)
    }

    fn receive(&mut self, room: &mut [u8]) -> Result<(usize, Socket), Farewell> {
        let wanted = room.len();
        loop {
            self.counters.receives.add(1);
            match rustix::net::recv(self.connection.socket(), &mut *room, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Farewell::Closed),
                Ok((received, _)) => {
                    forget_time();
                    self.counters.received_bytes.add(received as u64);
                    self.connection.heard(self.floor.seconds());
                    // What fills less than its room was all there is, and the next byte will be
                    // reported; only an end that was reported already would not be again.
                    let all = received < wanted && !self.connection.hung_up;
                    let socket = if all { Socket::Empty } else { Socket::MayHaveMore };
                    return Ok((received, socket));
                }
                Err(Errno::AGAIN) => return Ok((0, Socket::Empty)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Farewell::Broken(error.into())),
            }
        }
    }

    /// Answers the records at the front of `bytes`.
    fn answer_all(&mut self, bytes: &mut [u8]) -> Result<Cut, Farewell> {
        let mut used = 0;
        loop {
            let rest = &mut bytes[used..];
            let is_full = self.connection.backlog.is_some() || self.lates.len() >= LATES_MAX;
            if is_full && !rest.is_empty() {
                return Ok(Cut { used, needed: 0, stopped: true });
            }
            match next_record(rest, &RECORD_LIMITS)? {
                Scan::Partial { bytes_needed } => {
                    return Ok(Cut { used, needed: bytes_needed, stopped: false });
                }
                Scan::Record { body, end } => {
                    self.answer(&rest[body])?;
                    used += end;
                }
            }
            if self.replies_bytes() >= SEND_BYTES {
                self.send()?;
            }
        }
    }

    fn answer(&mut self, record: &[u8]) -> Result<(), Farewell> {
        self.counters.records.add(1);
        let dispatcher = self.floor.service.dispatcher();
        let connection = &*self.connection;
        let replies = &mut self.tools.replies;
        let mark = replies.mark();
        let answered = catch_unwind(AssertUnwindSafe(|| {
            dispatcher.answer(record, connection.peer.ip(), &connection.visitor, replies)
        }));
        match answered {
            Ok(Ok(Answered::Now | Answered::Never)) => {}
            Ok(Ok(Answered::Later(late))) => {
                self.lates.push(Pending { xid: xid(record), late });
            }
            Ok(Err(_)) if self.floor.service.heard(&connection.visitor, record) => {}
            Ok(Err(hangup)) => return Err(hangup.into()),
            Err(panic) => {
                self.tools.replies.rollback(mark);
                self.apologize(xid(record), &*panic);
            }
        }
        Ok(())
    }

    /// A program panicked: the call is answered SYSTEM_ERR, and the server lives.
    fn apologize(&mut self, xid: u32, panic: &(dyn Any + Send)) {
        static LOG: Quiet = Quiet::new();
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
        let peer = self.connection.peer;
        LOG.say(|suppressed| tracing::error!(%peer, xid, suppressed, "a call panicked: {text}"));
        self.counters.panics.add(1);
        let start = self.tools.replies.begin_record();
        accepted::system_err(&mut self.tools.replies, xid);
        self.tools.replies.end_record(start);
    }

    fn replies_bytes(&self) -> usize {
        let replies = &self.tools.replies;
        let files = replies.files().iter().map(|file| file.length as usize);
        replies.bytes().len() + files.sum::<usize>()
    }

    /// Sends the collected replies; what the peer does not take now waits in its backlog.
    fn send(&mut self) -> Result<(), Farewell> {
        if self.tools.replies.bytes().is_empty() {
            return Ok(());
        }
        let result = self.send_or_keep();
        self.tools.replies.clear(REPLY_BYTES_KEPT);
        forget_time();
        result
    }

    fn send_or_keep(&mut self) -> Result<(), Farewell> {
        self.counters.sends.add(1);
        self.counters.sent_bytes.add(self.replies_bytes() as u64);
        let outgoing = Outgoing::of(&self.tools.replies);
        let mut progress = Progress::default();
        let connection = &mut *self.connection;
        let account = &connection.place.account;
        if let Some(backlog) = &mut connection.backlog {
            return backlog.append(outgoing, account);
        }
        if outgoing.send(connection.socket(), &mut progress)? {
            return Ok(());
        }
        self.counters.backlogs.add(1);
        connection.backlog = Some(Box::new(Backlog::new(outgoing, progress, account)?));
        connection.reads(self.floor.seconds());
        Ok(())
    }

    /// Sends what waited; `false` if some still does.
    fn send_backlog(&mut self) -> Result<bool, Farewell> {
        let connection = &mut *self.connection;
        let Some(mut backlog) = connection.backlog.take() else { return Ok(true) };
        let Some(moved) = backlog.send(connection.socket())? else {
            connection.has_read();
            return Ok(true);
        };
        if moved {
            connection.reads(self.floor.seconds());
        }
        connection.backlog = Some(backlog);
        Ok(false)
    }
}

fn xid(record: &[u8]) -> u32 {
    record.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
