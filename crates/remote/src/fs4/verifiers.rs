use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use comity_proto::nfs4::Verifier4;
use comity_vfs::Handle;

use crate::limits::VERIFIERS;

/// The cookie verifiers of directories that are being listed (RFC 8881, 18.23.3): a cookie is good
/// together with the verifier that came with it.
#[derive(Debug, Default)]
pub(super) struct Verifiers(Mutex<HashMap<Handle, Verifier4>>);

impl Verifiers {
    /// The verifier that goes with a cookie of a directory; one that is not known is left to the
    /// server, which may take none.
    pub(super) fn of(&self, dir: &Handle, cookie: u64) -> Verifier4 {
        if cookie == 0 {
            return Verifier4::default();
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(dir).copied().unwrap_or_default()
    }

    /// Remembers the verifier of a directory. Those of servers that have none need no room.
    pub(super) fn note(&self, dir: &Handle, verifier: Verifier4) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if verifier == Verifier4::default() {
            known.remove(dir);
            return;
        }
        if known.len() >= VERIFIERS && !known.contains_key(dir) {
            let displaced = known.keys().next().copied();
            displaced.and_then(|dir| known.remove(&dir));
        }
        known.insert(*dir, verifier);
    }
}
