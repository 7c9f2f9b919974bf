use std::sync::Arc;

use comity_coherence::{Settle, broken_promise};
use comity_export::{Barrier, SealedHandle};
use comity_proto::nfs4::Nfsstat4;
use comity_rpc::{Deferred, Done};
use comity_state::{JournalPosition, OwnerAnswer, Ticket};
use comity_vfs::Status;
use comity_xdr::Encoder;

use crate::status::nfsstat4;

/// Something to wait for before a result may leave.
pub(crate) enum Wait {
    /// Files.
    Barrier(Barrier),
    /// Records about clients.
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

/// Something to wait for before a result may leave, and the place of a failure in the reply.
pub(crate) struct PendingResult {
    pub(crate) wait: Wait,
    pub(crate) place: Place,
}

/// The place of a result in the reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Results in the reply, this one among them.
    pub(crate) results: u32,
    /// The place of this result's status, in bytes behind the reply's beginning.
    pub(crate) status_at: usize,
    /// Words of zero that follow the status of a failure.
    pub(crate) failure_words: usize,
}

/// The answer to an owner's operation, kept for a client that asks again.
pub(crate) struct OwnerReply {
    pub(crate) answer: OwnerAnswer,
    /// The operation, its status and its body.
    pub(crate) result: Vec<u8>,
    pub(crate) handle: Option<SealedHandle>,
}

impl OwnerReply {
    /// It is true.
    pub(crate) fn told(self) {
        let handle = self.handle.as_ref().map(SealedHandle::bytes);
        self.answer.told(&self.result, handle);
    }

    /// It is not true; this is said instead.
    pub(crate) fn broken(self, status: Nfsstat4) {
        let operation = self.result.get(..4).unwrap_or_default();
        let result = [operation, &(status as u32).to_be_bytes()].concat();
        self.answer.told(&result, None);
    }
}

/// An answer to an owner that is kept once it is true.
pub(crate) struct PendingAnswer {
    pub(crate) kept: OwnerReply,
    /// Results in the reply, its own among them.
    pub(crate) results: u32,
}

/// A reply to a COMPOUND that has been promised to nobody yet.
pub(crate) struct DeferredReply {
    pub(crate) done: Done,
    pub(crate) pending_results: Vec<PendingResult>,
    pub(crate) pending_answers: Vec<PendingAnswer>,
    /// The reply from its status on.
    pub(crate) bytes: Box<[u8]>,
    /// The place of the count of results in it.
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

    /// The answers to owners are kept. An answer is a failure where the promise was broken, and
    /// there is none behind it, because the client is not told of that.
    fn settle(&mut self, broken: Option<(u32, Nfsstat4)>) {
        for PendingAnswer { kept, results } in self.pending_answers.drain(..) {
            match broken {
                Some((at, status)) if at == results => kept.broken(status),
                Some((at, _)) if at < results => {}
                _ => kept.told(),
            }
        }
    }

    /// Says the reply up to the result that is not true. What was done behind it was done; the
    /// client is not told, as if the connection had broken.
    fn broken(&self, place: Place, status: Nfsstat4, reply: &mut Encoder) -> Done {
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
