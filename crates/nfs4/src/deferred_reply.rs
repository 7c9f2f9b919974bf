use std::sync::Arc;

use comity_coherence::{Settle, broken_promise};
use comity_export::{Barrier, SealedHandle};
use comity_proto::nfs4::Nfsstat4;
use comity_rpc::{Deferred, Done};
use comity_state::{JournalPosition, OwnerAnswer, Ticket};
use comity_vfs::Status;
use comity_xdr::Encoder;

use crate::status::nfsstat4;

/// An event that a result must wait for before the reply is sent.
pub(crate) enum Wait {
    /// A barrier on the data of files.
    Barrier(Barrier),
    /// A record about clients that must be stored.
    Record(Arc<Settle>, JournalPosition),
}

impl Wait {
    fn wait(&self) -> comity_vfs::Result<()> {
        match self {
            Self::Barrier(barrier) => barrier.wait(),
            Self::Record(settle, position) => settle(*position).then_some(()).ok_or(Status::Io),
        }
    }
}

/// A result that must wait, and its position in the reply.
pub(crate) struct PendingResult {
    pub(crate) wait: Wait,
    pub(crate) place: ReplyPosition,
}

/// The position of a result in the reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyPosition {
    /// Number of results up to and including this one.
    pub(crate) results: u32,
    /// Position of the result's status, in bytes from the beginning of the reply.
    pub(crate) status_at: usize,
    /// Words of zero that follow the status of a failure.
    pub(crate) failure_words: usize,
}

/// The reply to an operation of an open-owner or lock-owner, which is kept for a retry.
pub(crate) struct OwnerReply {
    pub(crate) answer: OwnerAnswer,
    /// The number of the operation, its status and its body.
    pub(crate) result: Vec<u8>,
    pub(crate) handle: Option<SealedHandle>,
}

impl OwnerReply {
    /// Keeps the reply as it is.
    pub(crate) fn told(self) {
        let handle = self.handle.as_ref().map(SealedHandle::bytes);
        self.answer.told(&self.result, handle);
    }

    /// Keeps a failure instead of the reply.
    pub(crate) fn broken(self, status: Nfsstat4) {
        let operation = self.result.get(..4).unwrap_or_default();
        let result = [operation, &(status as u32).to_be_bytes()].concat();
        self.answer.told(&result, None);
    }
}

/// A reply to an owner that is kept after the result's wait.
pub(crate) struct PendingAnswer {
    pub(crate) kept: OwnerReply,
    /// Number of results up to this one, this one included.
    pub(crate) results: u32,
}

/// A reply to a COMPOUND that waits for barriers or records.
pub(crate) struct DeferredReply {
    pub(crate) done: Done,
    pub(crate) pending_results: Vec<PendingResult>,
    pub(crate) pending_answers: Vec<PendingAnswer>,
    /// The reply from its status on.
    pub(crate) bytes: Box<[u8]>,
    /// Position of the number of results in it.
    pub(crate) count_at: usize,
    /// The slot of the request.
    pub(crate) ticket: Option<Ticket>,
}

impl Deferred for DeferredReply {
    fn finish(mut self: Box<Self>, reply: &mut Encoder) -> Done {
        let (ticket, begin) = (self.ticket.take(), reply.checkpoint());
        let done = self.keep(reply);
        if let Some(ticket) = ticket {
            ticket.answered(reply.contiguous_since(begin));
        }
        done
    }
}

impl DeferredReply {
    fn keep(&mut self, reply: &mut Encoder) -> Done {
        let first = self.pending_results.iter().find_map(|pending| {
            pending
                .wait
                .wait()
                .err()
                .map(|failure| (pending.place, nfsstat4(broken_promise(failure))))
        });
        self.settle(first.map(|(place, status)| (place.results, status)));
        match first {
            Some((place, status)) => self.broken(place, status, reply),
            None => {
                reply.raw(&self.bytes);
                self.done
            }
        }
    }

    /// Keeps the replies to owners. If a wait failed, the reply of that operation becomes a
    /// failure. The replies of later operations are not kept, because the client does not receive
    /// them.
    fn settle(&mut self, broken: Option<(u32, Nfsstat4)>) {
        for PendingAnswer { kept, results } in self.pending_answers.drain(..) {
            match broken {
                Some((at, status)) if at == results => kept.broken(status),
                Some((at, _)) if at < results => {}
                _ => kept.told(),
            }
        }
    }

    /// Writes the reply up to the result whose wait failed. Later operations were executed, but the
    /// client does not receive their results, as if the connection had broken.
    fn broken(&self, place: ReplyPosition, status: Nfsstat4, reply: &mut Encoder) -> Done {
        let part = |range| self.bytes.get(range).unwrap_or_default();
        reply.value(&status);
        reply.raw(part(4..self.count_at));
        reply.value(&place.results);
        reply.raw(part(self.count_at + 4..place.status_at));
        reply.value(&status);
        (0..place.failure_words).for_each(|_| reply.value(&0_u32));
        Done { status: status as u32, ..self.done }
    }
}
