//! What a call caused to be said to other clients is said at once, not with the next tick.

use std::ops::RangeInclusive;

use comity_export::Visitor;
use comity_nfs4::Memory;
use comity_rpc::{Call, Outcome, Program, Repeat};
use comity_xdr::Encoder;

/// A program after whose calls clients are called back where that is due.
pub(super) struct Attentive<P> {
    program: P,
    memory: Memory,
}

impl<P> Attentive<P> {
    pub(super) const fn new(program: P, memory: Memory) -> Self {
        Self { program, memory }
    }
}

impl<P: Program<Visitor>> Program<Visitor> for Attentive<P> {
    fn number(&self) -> u32 {
        self.program.number()
    }

    fn versions(&self) -> RangeInclusive<u32> {
        self.program.versions()
    }

    fn procedure_name(&self, version: u32, procedure: u32) -> &'static str {
        self.program.procedure_name(version, procedure)
    }

    fn repeat(&self, version: u32, procedure: u32) -> Repeat {
        self.program.repeat(version, procedure)
    }

    fn repeat_of(&self, call: &Call<'_>) -> Repeat {
        self.program.repeat_of(call)
    }

    fn call(&self, call: &Call<'_>, visitor: &Visitor, reply: &mut Encoder) -> Outcome {
        let outcome = self.program.call(call, visitor, reply);
        if self.memory.engine.has_effects()
            && let Some(callbacks) = &self.memory.callbacks
        {
            callbacks.pump(self.memory.clock.now());
        }
        outcome
    }
}
