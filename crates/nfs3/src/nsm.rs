//! The status monitor (NSM). Other hosts notify it that they have restarted and hold no lock
//! any more. The crate `daemon` notifies other hosts when this server restarts.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use comity_coherence::host_name;
use comity_export::RpcPeer;
use comity_proto::nsm::{HostName, PROGRAM, Res, SmStatRes, StatChge, VERSION, procedure};
use comity_rpc::{Call, Done, Outcome, Program, Repeat};
use comity_state::Engine;
use comity_xdr::{Encoder, Malformed};

use crate::forward::{CallForwarder, has_told};
use crate::system_port::is_system;

/// The program NSM, version 1: the procedures that other hosts call.
pub struct Nsm {
    engine: Arc<Engine>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    state: i32,
    forwarder: Option<Arc<dyn CallForwarder>>,
}

impl Nsm {
    /// Returns the program. It frees the locks of hosts of `engine`, whose times come from
    /// `clock`. `state` is the state number of this server: odd, and another one in each
    /// life of the server.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
        state: i32,
    ) -> Self {
        Self { engine, clock: Box::new(clock), state, forwarder: None }
    }

    /// Tells the servers to which exports have moved, too, that a host has restarted.
    #[must_use]
    pub fn forwarding(self, forwarder: Arc<dyn CallForwarder>) -> Self {
        Self { forwarder: Some(forwarder), ..self }
    }

    /// A host can free its own locks only: the name in the notice is ignored, and the locks
    /// of the sender's address are freed. The notice must come from a port below 1024, so
    /// that a user of the host cannot free the locks of others; status monitors have such a
    /// port.
    ///
    /// Returns whether all servers that must know have been told.
    fn notified(&self, call: &Call<'_>, visitor: &RpcPeer) -> Result<bool, Malformed> {
        let StatChge { state, .. } = call.arguments()?;
        if !is_system(visitor) {
            return Ok(true);
        }
        self.engine.host_began_anew((self.clock)(), &host_name(visitor), state);
        Ok(has_told(self.forwarder.as_deref(), (visitor, call)))
    }

    /// The server watches no hosts on behalf of others.
    fn stat(&self, call: &Call<'_>, reply: &mut Encoder) -> Result<bool, Malformed> {
        call.arguments::<HostName<'_>>()?;
        reply.value(&SmStatRes { res: Res::Fail, state: self.state });
        Ok(true)
    }
}

impl Program<RpcPeer> for Nsm {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _version: u32, procedure: u32) -> &'static str {
        match procedure {
            procedure::NULL => "NULL",
            procedure::STAT => "STAT",
            procedure::NOTIFY => "NOTIFY",
            _ => "unknown",
        }
    }

    fn repeat(&self, _version: u32, _procedure: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        let answered = match call.header.procedure {
            procedure::NULL => call.arguments::<()>().map(|()| true),
            procedure::STAT => self.stat(call, reply),
            procedure::NOTIFY => self.notified(call, visitor),
            _ => return Outcome::ProcUnavail,
        };
        match answered {
            Ok(true) => Outcome::Done(Done::default()),
            // The host notifies again.
            Ok(false) => Outcome::Silence,
            Err(_) => Outcome::GarbageArgs,
        }
    }
}
