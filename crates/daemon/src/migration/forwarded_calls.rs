//! The target's side of forwarding: calls of clients that still use the server which an export has
//! left.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use comity_export::{ExportId, Exports, PeerServer, RpcPeer};
use comity_migrate::{CallFailure, ForwardedCalls, ForwardingHosts};
use comity_rpc::{Answered, Dispatcher, Program, ReplyVerifier, accepted};
use comity_server::blocking;
use comity_state::Engine;
use comity_xdr::Encoder;

use super::MovedExports;
use crate::program_gate::ProgramGate;
use crate::statd::address;

/// Length of the record mark of a reply in bytes.
const MARK_BYTES: usize = 4;

/// The programs of NFSv3 for clients of other servers.
pub(crate) struct ForwardedPrograms {
    dispatcher: Dispatcher<RpcPeer, ProgramGate>,
    exports: Arc<Exports>,
    moved: Arc<MovedExports>,
    begun: Instant,
    engine: Arc<Engine>,
    /// A number that differs in every run of the server.
    run: u64,
    /// The last second of which the replay cache was told.
    second: AtomicU32,
}

impl ForwardedPrograms {
    pub(crate) fn new(
        programs: Vec<Arc<dyn Program<RpcPeer>>>,
        (exports, moved): (&Arc<Exports>, &Arc<MovedExports>),
        engine: &Arc<Engine>,
        run: u64,
    ) -> Self {
        // The gate of the forwarding call has checked the lease of a head.
        let dispatcher = Dispatcher::new(programs, ProgramGate::new(exports, None));
        let (exports, moved) = (Arc::clone(exports), Arc::clone(moved));
        let (engine, begun, second) = (Arc::clone(engine), Instant::now(), AtomicU32::new(0));
        Self { dispatcher, exports, moved, begun, engine, run, second }
    }

    /// Returns the numbers of the exports that a peer has handed over.
    fn handed_over_by(&self, peer: &PeerServer) -> Vec<u32> {
        self.exports.current().ids_of(&self.moved.taken_from(&peer.name))
    }

    fn tick(&self) {
        let second = self.begun.elapsed().as_secs() as u32;
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.dispatcher.tick(second);
        }
    }
}

impl ForwardedCalls for ForwardedPrograms {
    fn answer(
        &self,
        from: &PeerServer,
        client: SocketAddr,
        call: &[u8],
    ) -> Result<Vec<u8>, CallFailure> {
        let exports = self.handed_over_by(from);
        if exports.is_empty() {
            return Err(CallFailure::invalid("it has no export that came from there"));
        }
        self.tick();
        let exports: Vec<_> = exports.into_iter().map(ExportId).collect();
        let (client_peer, mut reply) = (RpcPeer::new(client).confined_to(exports), Encoder::new());
        match self.dispatcher.answer(call, client.ip(), &client_peer, &mut reply) {
            Ok(Answered::Later(late)) => drop(blocking(|| late.finish(&mut reply))),
            Ok(Answered::Undecided) => {
                return Err(CallFailure::at_present("the name of the client is being looked up"));
            }
            Ok(_) => {}
            Err(hangup) => return Err(CallFailure::invalid(hangup)),
        }
        let reply = blocking(|| reply.flattened()).unwrap_or_else(|_| system_error(call));
        Ok(reply.get(MARK_BYTES..).unwrap_or_default().to_vec())
    }

    fn hosts(&self, from: &PeerServer) -> ForwardingHosts {
        let names = self.engine.hosts_in(&self.handed_over_by(from));
        ForwardingHosts {
            run: self.run,
            hosts: names.iter().filter_map(|it| address(it)).collect(),
        }
    }
}

/// Returns the reply to a call whose data cannot be read any more, with its record mark.
fn system_error(call: &[u8]) -> Vec<u8> {
    let xid = call.first_chunk().map_or(0, |xid| u32::from_be_bytes(*xid));
    let mut reply = Encoder::new();
    let start = reply.begin_record();
    accepted::system_err(&mut reply, xid, &ReplyVerifier::Empty);
    reply.end_record(start);
    reply.bytes().to_vec()
}
