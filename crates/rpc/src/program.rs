use std::ops::RangeInclusive;

use comity_xdr::Encoder;

use crate::{AuthStat, Call};

/// An RPC program: some versions of one number. `V` is what the shell knows of the peer.
pub trait Program<V: ?Sized>: Send + Sync {
    /// Its number.
    fn number(&self) -> u32;

    /// The versions it speaks.
    fn versions(&self) -> RangeInclusive<u32>;

    /// Returns the name of a procedure in the spelling of its RFC; for logs and metrics.
    fn procedure_name(&self, version: u32, procedure: u32) -> &'static str;

    /// Returns whether a procedure may be done twice.
    fn repeat(&self, version: u32, procedure: u32) -> Repeat;

    /// Returns whether this call of a procedure may be done twice, where its arguments decide that.
    fn repeat_of(&self, call: &Call<'_>) -> Repeat {
        self.repeat(call.header.version, call.header.procedure)
    }

    /// Answers a call of one of its versions: appends the results, and only those, to `reply`. The
    /// appended results are taken back unless it returns [`Outcome::Done`].
    fn call(&self, call: &Call<'_>, visitor: &V, reply: &mut Encoder) -> Outcome;
}

/// Something around a program that is the program in all but how calls are answered: metrics and
/// the like live there.
pub trait Layer<V: ?Sized>: Send + Sync {
    /// The wrapped program.
    type Inner: Program<V>;

    /// The program it is around.
    fn inner(&self) -> &Self::Inner;

    /// Answers a call, as [`Program::call`] does, by asking the program or otherwise.
    fn answer(&self, call: &Call<'_>, visitor: &V, reply: &mut Encoder) -> Outcome;
}

impl<V: ?Sized, L: Layer<V>> Program<V> for L {
    fn number(&self) -> u32 {
        self.inner().number()
    }

    fn versions(&self) -> RangeInclusive<u32> {
        self.inner().versions()
    }

    fn procedure_name(&self, version: u32, procedure: u32) -> &'static str {
        self.inner().procedure_name(version, procedure)
    }

    fn repeat(&self, version: u32, procedure: u32) -> Repeat {
        self.inner().repeat(version, procedure)
    }

    fn repeat_of(&self, call: &Call<'_>) -> Repeat {
        self.inner().repeat_of(call)
    }

    fn call(&self, call: &Call<'_>, visitor: &V, reply: &mut Encoder) -> Outcome {
        self.answer(call, visitor, reply)
    }
}

/// The effect of doing a call twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// None: it is simply done again.
    Harmless,
    /// A repetition changes the result: the first reply is kept and sent again.
    Remember,
}

/// The outcome of a call.
pub enum Outcome {
    /// The results stand in the reply.
    Done(Done),
    /// The results follow when something slow, a barrier above all, has been done. The shell may do
    /// that for many calls together.
    Deferred(Box<dyn Deferred>),
    /// The program has no such procedure.
    ProcUnavail,
    /// The arguments make no sense.
    GarbageArgs,
    /// We failed.
    SystemErr,
    /// The credential is refused.
    Denied(AuthStat),
    /// Nothing is answered; the client will ask again.
    Silence,
}

/// A call that has been answered; for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// The status in the program's own numbers, 0 for success.
    pub status: u32,
    /// The number of the export it was about, if about one.
    pub export: Option<u32>,
}

/// The second half of a call: slow work, then the results.
pub trait Deferred: Send {
    /// Does the work and appends the results, and only those.
    fn finish(self: Box<Self>, reply: &mut Encoder) -> Done;
}
