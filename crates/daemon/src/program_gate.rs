//! The gate before the programs: it decides which program a peer may call at all.

use std::sync::Arc;

use comity_export::{Exports, RpcPeer};
use comity_proto::{migration, mount, nfs4};
use comity_rpc::{Admission, CallHeader, Gate, GateRefusal};

/// The gate of the exports. MOUNT may be called without TLS, because Linux calls it so even for TLS
/// mounts; the exports then reveal only the handle of their root.
pub(crate) struct ProgramGate(Arc<Exports>);

impl ProgramGate {
    pub(crate) fn new(exports: &Arc<Exports>) -> Self {
        Self(Arc::clone(exports))
    }
}

impl Gate<RpcPeer> for ProgramGate {
    #[inline]
    fn admits(&self, visitor: &RpcPeer) -> Admission {
        self.0.admits(visitor)
    }

    #[inline]
    fn admits_call(&self, visitor: &RpcPeer, call: &CallHeader<'_>) -> Admission {
        match call.program {
            migration::PROGRAM => self.0.admits_peer_server(visitor),
            mount::PROGRAM => self.0.admits_in_clear(visitor),
            nfs4::PROGRAM if call.version == nfs4::VERSION => self.0.admits_compound(visitor),
            _ => self.0.admits(visitor),
        }
    }

    #[inline]
    fn proof_of(&self, visitor: &RpcPeer) -> u64 {
        self.0.proof_of(visitor)
    }

    fn refusal_reason(&self, visitor: &RpcPeer, refusal: GateRefusal) -> String {
        match refusal.program {
            migration::PROGRAM => self.0.peer_refusal_reason(visitor),
            _ => self.0.refusal_reason(visitor, refusal),
        }
    }

    fn starts_tls(&self, visitor: &RpcPeer) -> bool {
        self.0.starts_tls(visitor)
    }
}
