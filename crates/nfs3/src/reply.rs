use comity_coherence::broken_promise;
use comity_export::{Barrier, View};
use comity_proto::nfs3::Nfsstat3;
use comity_rpc::{Deferred, Done, Outcome};
use comity_vfs::Status;
use comity_xdr::{Checkpoint, Encode, Encoder};

use crate::status::nfsstat3;

/// The results of a verb, which are in the reply. They are sent now, or when a barrier has been
/// passed.
pub(crate) struct Answer {
    done: Done,
    /// The barrier is boxed because few answers have one.
    barrier: Option<Box<Barrier>>,
}

impl Answer {
    /// Returns an answer that may be sent at once: its results are in the reply and promise
    /// nothing.
    pub(crate) const fn new(done: Done) -> Self {
        Self { done, barrier: None }
    }

    /// Returns the same answer, sent only after `barrier`: its results are not true before.
    pub(crate) fn behind(self, barrier: Option<Barrier>) -> Self {
        Self { barrier: barrier.map(Box::new), ..self }
    }

    /// Hands the answer to the shell. An answer that waits for a barrier is kept until then; if the
    /// barrier fails, a failure takes its place, with a body of `absent_words` words of "absent".
    pub(crate) fn outcome(
        self,
        reply: &Encoder,
        start: Checkpoint,
        absent_words: usize,
    ) -> Outcome {
        let Some(barrier) = self.barrier else { return Outcome::Done(self.done) };
        let Some(results) = reply.contiguous_since(start) else { return Outcome::SystemErr };
        let (done, results) = (self.done, results.into());
        Outcome::Deferred(Box::new(DeferredReply { done, barrier, results, absent_words }))
    }
}

/// Appends OK and its body.
pub(crate) fn ok(reply: &mut Encoder, view: &View<'_>, body: &impl Encode) -> Answer {
    end(reply, view, Nfsstat3::Ok, body)
}

/// Appends a failure and the body that goes with it.
pub(crate) fn fail(
    reply: &mut Encoder,
    view: &View<'_>,
    status: Status,
    body: &impl Encode,
) -> Answer {
    end(reply, view, nfsstat3(status), body)
}

/// Appends a failure about which nothing more is known. Its body has `words` words of zero: in
/// the results of every verb, zero means that an optional part is absent.
pub(crate) fn absent(reply: &mut Encoder, status: u32, words: usize) {
    reply.value(&status);
    (0..words).for_each(|_| reply.value(&false));
}

#[inline(always)]
fn end(reply: &mut Encoder, view: &View<'_>, status: Nfsstat3, body: &impl Encode) -> Answer {
    reply.value(&status);
    reply.value(body);
    Answer::new(Done { status: status as u32, export: Some(view.export_id().0) })
}

/// Results that are sent once their barrier is done.
struct DeferredReply {
    done: Done,
    barrier: Box<Barrier>,
    results: Box<[u8]>,
    absent_words: usize,
}

impl Deferred for DeferredReply {
    fn finish(self: Box<Self>, reply: &mut Encoder) -> Done {
        match self.barrier.wait() {
            Ok(()) => {
                reply.raw(&self.results);
                self.done
            }
            Err(failure) => {
                let status = nfsstat3(broken_promise(failure)) as u32;
                absent(reply, status, self.absent_words);
                Done { status, ..self.done }
            }
        }
    }
}
