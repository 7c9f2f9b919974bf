use comity_export::Referred;
use comity_rpc::{Outcome, Repeat};
use comity_vfs::Status;
use comity_xdr::{Checkpoint, Encoder};

use crate::reply::{Answer, absent};
use crate::request::{Request, Stop};

/// A verb of the program `P`: from a request to its results, appended to the reply.
pub(crate) type Verb<P> = fn(&P, &Request<'_>, &mut Encoder) -> Result<Answer, Stop>;

/// A procedure of the program `P`.
pub(crate) struct Row<P> {
    /// Its number.
    pub(crate) number: u32,
    /// Its name in the RFC.
    pub(crate) name: &'static str,
    /// The handling of a call that is repeated.
    pub(crate) repeat: Repeat,
    /// Words of a failure's body in which everything is absent.
    pub(crate) absent_words: usize,
    /// The function that does it.
    pub(crate) verb: Verb<P>,
}

impl<P> Row<P> {
    /// Answers a call; `number` returns the status number of the program. Each program
    /// calls it in one place, where it is inlined.
    ///
    /// # Errors
    /// The call must be forwarded to the server that has the export. Nothing was appended.
    #[inline(always)]
    pub(crate) fn perform(
        &self,
        program: &P,
        request: &Request<'_>,
        reply: &mut Encoder,
        number: impl Fn(Status) -> u32,
    ) -> Result<Outcome, Referred> {
        let start = reply.checkpoint();
        Ok(match (self.verb)(program, request, reply) {
            Ok(answer) => answer.outcome(reply, start, self.absent_words),
            Err(Stop::Garbage) => Outcome::GarbageArgs,
            Err(Stop::Denied(why)) => Outcome::Denied(why),
            Err(Stop::Status(status)) => self.failed(number(status), (reply, start)),
            // A handle from the time when the files were here is of nothing any more.
            Err(Stop::Referred) => self.failed(number(Status::Stale), (reply, start)),
            Err(Stop::Forward(referred)) => return Err(referred),
        })
    }

    /// Answers with a status alone.
    pub(crate) fn failed(
        &self,
        status: u32,
        (reply, start): (&mut Encoder, Checkpoint),
    ) -> Outcome {
        reply.rollback(start);
        absent(reply, status, self.absent_words);
        Outcome::Done(comity_rpc::Done { status, export: None })
    }
}

/// Returns the row of a procedure. Its index in `rows` is the procedure number.
pub(crate) fn row<P>(rows: &'static [Row<P>], procedure: u32) -> Option<&'static Row<P>> {
    rows.get(procedure as usize).filter(|row| row.number == procedure)
}
