//! The gate before the programs: it decides which program a peer may call at all.

use std::sync::Arc;

use comity_export::{Exports, RpcPeer};
use comity_proto::{migration, mount, nfs4};
use comity_rpc::{Admission, CallHeader, Gate, GateRefusal};

use crate::head_lease::HeadLease;

/// The gate of the exports. MOUNT may be called without TLS, because Linux calls it so even for TLS
/// mounts; the exports then reveal only the handle of their root.
pub(crate) struct ProgramGate {
    exports: Arc<Exports>,
    /// The lease of this head, if the server is one: without it, it answers no call.
    lease: Option<Arc<HeadLease>>,
}

impl ProgramGate {
    pub(crate) fn new(exports: &Arc<Exports>, lease: Option<&Arc<HeadLease>>) -> Self {
        Self { exports: Arc::clone(exports), lease: lease.cloned() }
    }
}

impl Gate<RpcPeer> for ProgramGate {
    #[inline]
    fn admits(&self, visitor: &RpcPeer) -> Admission {
        self.exports.admits(visitor)
    }

    #[inline]
    fn admits_call(&self, visitor: &RpcPeer, call: &CallHeader<'_>) -> Admission {
        if let Some(lease) = &self.lease {
            lease.check();
        }
        match call.program {
            migration::PROGRAM => self.exports.admits_peer_server(visitor),
            mount::PROGRAM => self.exports.admits_in_clear(visitor),
            nfs4::PROGRAM if call.version == nfs4::VERSION => self.exports.admits_compound(visitor),
            _ => self.exports.admits(visitor),
        }
    }

    #[inline]
    fn proof_of(&self, visitor: &RpcPeer) -> u64 {
        self.exports.proof_of(visitor)
    }

    fn refusal_reason(&self, visitor: &RpcPeer, refusal: GateRefusal) -> String {
        match refusal.program {
            migration::PROGRAM => self.exports.peer_refusal_reason(visitor),
            _ => self.exports.refusal_reason(visitor, refusal),
        }
    }

    fn starts_tls(&self, visitor: &RpcPeer) -> bool {
        self.exports.starts_tls(visitor)
    }
}
