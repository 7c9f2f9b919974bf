use std::ops::RangeInclusive;

use comity_xdr::Encoder;

use crate::{AuthStat, Call};

/// An RPC program: some versions of one program number. `V` is the type of the server's data about
/// the peer.
pub trait Program<V: ?Sized>: Send + Sync {
    /// Its number.
    fn number(&self) -> u32;

    /// The versions that it supports.
    fn versions(&self) -> RangeInclusive<u32>;

    /// Returns the name of a procedure in the spelling of its RFC; for logs and metrics.
    fn procedure_name(&self, version: u32, procedure: u32) -> &'static str;

    /// Returns whether a procedure may be executed twice.
    fn repeat(&self, version: u32, procedure: u32) -> Repeat;

    /// Returns whether this call may be executed twice, if that depends on its arguments.
    fn repeat_of(&self, call: &Call<'_>) -> Repeat {
        self.repeat(call.header.version, call.header.procedure)
    }

    /// Answers a call of one of the program's versions: appends the results, and only those, to
    /// `reply`. The results are removed again unless the outcome is [`Outcome::Done`].
    fn call(&self, call: &Call<'_>, visitor: &V, reply: &mut Encoder) -> Outcome;
}

/// A wrapper around a program that changes only how calls are answered, such as metrics.
pub trait Layer<V: ?Sized>: Send + Sync {
    /// The wrapped program.
    type Inner: Program<V>;

    /// Returns the wrapped program.
    fn inner(&self) -> &Self::Inner;

    /// Answers a call as [`Program::call`] does, by calling the wrapped program or without it.
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

/// The effect of executing a call twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Executing the call again is harmless.
    Harmless,
    /// Executing the call again would change the result: the first reply is kept and sent again.
    Remember,
}

/// The outcome of a call.
pub enum Outcome {
    /// The results were appended to the reply.
    Done(Done),
    /// The results follow when something slow, mostly a barrier, is done. The server may do that
    /// for many calls together.
    Deferred(Box<dyn Deferred>),
    /// The program has no such procedure.
    ProcUnavail,
    /// The arguments are malformed.
    GarbageArgs,
    /// An internal error.
    SystemErr,
    /// The credential is refused.
    Denied(AuthStat),
    /// No reply is sent; the client will retry.
    Silence,
}

/// A call that has been answered; for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// The status in the program's own numbers, 0 for success.
    pub status: u32,
    /// The number of the export that the call was about, if there is one.
    pub export: Option<u32>,
}

/// The second half of a call: slow work, then the results.
pub trait Deferred: Send {
    /// Does the work and appends the results, and only those.
    fn finish(self: Box<Self>, reply: &mut Encoder) -> Done;
}
