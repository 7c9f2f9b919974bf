use std::ops::RangeInclusive;

use comity_rpc::{Call, Done, Outcome, Program, Repeat};
use comity_xdr::{Encoder, Opaque};

use crate::system::{drop_caches, shell};

/// The number of the RPC program, from the range for any user (RFC 5531, 8.2).
pub(super) const PROGRAM: u32 = 0x2063_6d62;
/// The only version of the program.
pub(super) const VERSION: u32 = 1;
/// The procedure that does nothing.
const NULL: u32 = 0;
/// The procedure that empties caches. It takes no arguments; it returns a status, 0 for success,
/// and a text.
pub(super) const FLUSH: u32 = 1;
/// Most bytes of the text.
pub(super) const TEXT_BYTES_MAX: u32 = 1024;

/// The action that a client's call starts.
#[derive(Debug)]
pub(super) struct Flush {
    /// Shell commands; if there are none, the kernel's caches are dropped.
    pub(super) commands: Vec<String>,
}

impl Program<()> for Flush {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _: u32, procedure: u32) -> &'static str {
        match procedure {
            NULL => "NULL",
            FLUSH => "FLUSH",
            _ => "unknown",
        }
    }

    fn repeat(&self, _: u32, _: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, (): &(), reply: &mut Encoder) -> Outcome {
        match (call.header.procedure, call.arguments) {
            (NULL, _) => Outcome::Done(Done::default()),
            (FLUSH, []) => Outcome::Done(self.flush(reply)),
            (FLUSH, _) => Outcome::GarbageArgs,
            _ => Outcome::ProcUnavail,
        }
    }
}

impl Flush {
    fn flush(&self, reply: &mut Encoder) -> Done {
        let result = match self.commands.as_slice() {
            [] => drop_caches(),
            commands => commands.iter().try_for_each(|command| shell(command, &[])),
        };
        let text = result.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default();
        let text = text.as_bytes();
        let text = text.get(..TEXT_BYTES_MAX as usize).unwrap_or(text);
        let status = u32::from(result.is_err());
        reply.value(&status);
        reply.value(&Opaque::<TEXT_BYTES_MAX>(text));
        Done { status, export: None }
    }
}
