use std::ops::RangeInclusive;

use comity_export::RpcPeer;
use comity_proto::nfs4::{CompoundHead, PROGRAM, VERSION, procedure};
use comity_rpc::{Call, Done, Outcome, Program, Repeat};
use comity_xdr::{Decoder, Encoder};

use crate::execute;
use crate::program::Nfs4;
use crate::repeated::may_change;

impl Program<RpcPeer> for Nfs4 {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _version: u32, procedure: u32) -> &'static str {
        match procedure {
            procedure::NULL => "NULL",
            procedure::COMPOUND => "COMPOUND",
            _ => "unknown",
        }
    }

    fn repeat(&self, _version: u32, _procedure: u32) -> Repeat {
        Repeat::Harmless
    }

    /// Returns how a retry of the call is recognized. Sessions recognize retries themselves. In
    /// 4.0, owners do so for opens and locks, and the replay cache for other changes.
    fn repeat_of(&self, call: &Call<'_>) -> Repeat {
        let mut args = Decoder::new(call.arguments);
        match args.value::<CompoundHead<'_>>() {
            Ok(head) if head.minorversion == 0 && may_change(&mut args) => Repeat::Remember,
            _ => Repeat::Harmless,
        }
    }

    fn call(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        match call.header.procedure {
            procedure::NULL => Outcome::Done(Done::default()),
            procedure::COMPOUND => execute::answer(self, call, visitor, reply),
            _ => Outcome::ProcUnavail,
        }
    }
}
