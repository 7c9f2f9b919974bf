use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use comity_export::{Exports, PeerServer, RpcPeer};
use comity_programs::{CallFailure, answer, done};
use comity_proto::migration::{
    ForwardArgs, HostsReply, MigrationArgs, MigrationId, PROGRAM, REPLY_BYTES_MAX, SendArgs,
    Status, VERSION, procedure,
};
use comity_rpc::{Call, Outcome, Program, Repeat};
use comity_xdr::{Encoder, Opaque};

use crate::forwarding_hosts::canonical;
use crate::{ForwardedCalls, MigrationTarget};

/// The migration program, version 1, at the server to which exports are moved.
pub struct MigrationProgram {
    exports: Arc<Exports>,
    target: Arc<dyn MigrationTarget>,
    forwarded: Option<Arc<dyn ForwardedCalls>>,
}

impl MigrationProgram {
    /// Makes the program; the peers are those of `exports`.
    #[must_use]
    pub fn new(exports: Arc<Exports>, target: Arc<dyn MigrationTarget>) -> Self {
        Self { exports, target, forwarded: None }
    }

    /// Answers calls that peers forward. Without it they are refused.
    #[must_use]
    pub fn answering(self, forwarded: Option<Arc<dyn ForwardedCalls>>) -> Self {
        Self { forwarded, ..self }
    }

    fn forwarded_calls(&self) -> Result<&dyn ForwardedCalls, CallFailure> {
        let missing = || CallFailure::invalid("it does not serve NFSv3");
        self.forwarded.as_deref().ok_or_else(missing)
    }

    fn forwarded(
        &self,
        from: &PeerServer,
        ForwardArgs { address, port, call }: &ForwardArgs<'_>,
    ) -> Result<Vec<u8>, CallFailure> {
        let forwarded = self.forwarded_calls()?;
        let port = u16::try_from(*port).map_err(|_| CallFailure::invalid("no such port"))?;
        forwarded.answer(from, SocketAddr::new(canonical(*address), port), call.0)
    }
}

impl Program<RpcPeer> for MigrationProgram {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _version: u32, procedure: u32) -> &'static str {
        match procedure {
            procedure::NULL => "NULL",
            procedure::OFFER => "OFFER",
            procedure::SEND => "SEND",
            procedure::TAKE => "TAKE",
            procedure::OUTCOME => "OUTCOME",
            procedure::FORWARD => "FORWARD",
            procedure::HOSTS => "HOSTS",
            procedure::LOAD => "LOAD",
            _ => "unknown",
        }
    }

    /// All calls may be repeated: a part that is sent twice is refused, and a source that lost an
    /// answer asks for the outcome. A forwarded call is recognized as the call of its client.
    fn repeat(&self, _version: u32, _procedure: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        if call.header.procedure == procedure::NULL {
            return done(call.arguments::<()>().map(|()| 0));
        }
        let Some(from) = self.exports.peer_server(visitor) else {
            let text = "the connection proved no key of a [[peer]] or head";
            let denied = CallFailure::new(Status::Denied, text);
            return done(Ok(answer::<()>(reply, Err(denied))));
        };
        let target = &self.target;
        match call.header.procedure {
            procedure::OFFER => done(
                call.arguments::<MigrationArgs<'_>>()
                    .map(|offer| answer(reply, target.offer(&from, &offer))),
            ),
            procedure::SEND => done(
                call.arguments::<SendArgs<'_>>()
                    .map(|part| answer(reply, target.receive(&from, &part))),
            ),
            procedure::TAKE => done(
                call.arguments::<MigrationArgs<'_>>()
                    .map(|offer| answer(reply, target.take(&from, &offer))),
            ),
            procedure::OUTCOME => done(
                call.arguments::<MigrationId>()
                    .map(|id| answer(reply, Ok(target.outcome(&from, &id)))),
            ),
            procedure::FORWARD => done(call.arguments::<ForwardArgs<'_>>().map(|call| {
                let answered = self.forwarded(&from, &call);
                answer(
                    reply,
                    answered.as_deref().map(Opaque::<REPLY_BYTES_MAX>).map_err(Clone::clone),
                )
            })),
            procedure::HOSTS => done(call.arguments::<()>().map(|()| {
                let calls = self.forwarded_calls();
                answer(reply, calls.map(|calls| HostsReply::from(calls.hosts(&from))))
            })),
            procedure::LOAD => {
                done(call.arguments::<()>().map(|()| answer(reply, Ok(target.load()))))
            }
            _ => Outcome::ProcUnavail,
        }
    }
}
