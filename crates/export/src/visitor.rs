use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_credential::OpaqueAuth;

use crate::ExportId;
use crate::view::Pass;

/// How many passes a visitor keeps: the users of one client that take turns on a connection.
const PASSES_MAX: usize = 8;

/// One connection's peer, and the passes it was given: under which rules and ids it meets an export
/// is decided once and kept until the plan changes.
pub struct Visitor {
    peer: SocketAddr,
    passes: Mutex<Passes>,
}

#[derive(Default)]
struct Passes {
    generation: u64,
    kept: Vec<Kept>,
    next: usize,
}

struct Kept {
    export: ExportId,
    flavor: u32,
    body: Box<[u8]>,
    pass: Arc<Pass>,
}

impl Visitor {
    /// Somebody who came from this address.
    #[must_use]
    pub fn new(peer: SocketAddr) -> Self {
        Self { peer, passes: Mutex::default() }
    }

    /// Where it came from.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The pass this visitor has for an export with a credential, if it has one of this generation.
    pub(crate) fn pass(
        &self,
        generation: u64,
        export: ExportId,
        credential: &OpaqueAuth<'_>,
    ) -> Option<Arc<Pass>> {
        let passes = self.passes();
        if passes.generation != generation {
            return None;
        }
        passes.kept.iter().find(|kept| kept.is(export, credential)).map(|k| Arc::clone(&k.pass))
    }

    /// Keeps a pass; the oldest makes room.
    pub(crate) fn keep(&self, generation: u64, credential: &OpaqueAuth<'_>, pass: &Arc<Pass>) {
        let export = pass.export().id();
        let (flavor, body) = (credential.flavor.0, credential.body.0.into());
        let kept = Kept { export, flavor, body, pass: Arc::clone(pass) };
        let mut passes = self.passes();
        if passes.generation != generation {
            *passes = Passes { generation, ..Passes::default() };
        }
        let at = passes.next % PASSES_MAX;
        passes.next = at + 1;
        match passes.kept.get_mut(at) {
            Some(place) => *place = kept,
            None => passes.kept.push(kept),
        }
    }

    fn passes(&self) -> MutexGuard<'_, Passes> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn is(&self, export: ExportId, credential: &OpaqueAuth<'_>) -> bool {
        self.export == export
            && self.flavor == credential.flavor.0
            && *self.body == *credential.body.0
    }
}
