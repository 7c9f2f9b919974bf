//! RPC: a record gets one well-framed reply, or none.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use comity_rpc::{Call, Dispatcher, Done, OpenGate, Outcome, Program, Repeat};
use comity_xdr::{Encoder, Opaque};
use libfuzzer_sys::fuzz_target;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Echoes its argument; its procedures stand for all the ways a call can end.
struct Echo;

impl Program<()> for Echo {
    fn number(&self) -> u32 {
        100_003
    }

    fn versions(&self) -> RangeInclusive<u32> {
        3..=4
    }

    fn procedure_name(&self, _: u32, _: u32) -> &'static str {
        "echo"
    }

    fn repeat(&self, _: u32, procedure: u32) -> Repeat {
        if procedure % 2 == 0 { Repeat::Harmless } else { Repeat::Remember }
    }

    fn call(&self, call: &Call<'_>, (): &(), reply: &mut Encoder) -> Outcome {
        match (call.header.procedure, call.arguments::<Opaque<'_, 1024>>()) {
            (0..4, Ok(argument)) => {
                reply.value(&argument);
                Outcome::Done(Done::default())
            }
            (0..4, Err(_)) => Outcome::GarbageArgs,
            (4, _) => Outcome::SystemErr,
            (5, _) => Outcome::Silence,
            _ => Outcome::ProcUnavail,
        }
    }
}

fuzz_target!(|record: &[u8]| {
    let dispatcher = Dispatcher::new(vec![Arc::new(Echo) as Arc<dyn Program<()>>], OpenGate);
    for _ in 0..2 {
        let mut replies = Encoder::new();
        let _ = dispatcher.answer(record, PEER, &(), &mut replies);
        comity_fuzz::assert_one_reply(record, &replies);
    }
});
