//! Sends the callbacks that a call caused at once, not at the next tick.

use comity_export::RpcPeer;
use comity_nfs4::Memory;
use comity_rpc::{Call, Layer, Outcome, Program};
use comity_xdr::Encoder;

/// A program whose calls may cause callbacks.
pub(super) struct CallbackLayer<P> {
    program: P,
    memory: Memory,
}

impl<P> CallbackLayer<P> {
    pub(super) const fn new(program: P, memory: Memory) -> Self {
        Self { program, memory }
    }
}

impl<P: Program<RpcPeer>> Layer<RpcPeer> for CallbackLayer<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        &self.program
    }

    fn answer(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        let outcome = self.program.call(call, visitor, reply);
        if self.memory.engine.has_effects()
            && let Some(callbacks) = &self.memory.callbacks
        {
            callbacks.pump(self.memory.clock.now());
        }
        if self.memory.engine.has_freed()
            && let Some(locals) = &self.memory.locals
        {
            locals.settle();
        }
        outcome
    }
}
