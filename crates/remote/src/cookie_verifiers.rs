use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use comity_vfs::Handle;

use crate::limits::VERIFIERS;

/// The verifier of a cookie (`cookieverf3`, `verifier4`).
pub(crate) type CookieVerifier = [u8; 8];

/// The cookie verifiers of directories that are being listed (RFC 1813, 3.3.16; RFC 8881, 18.23.3):
/// a cookie is sent with the verifier that came with it.
#[derive(Debug, Default)]
pub(crate) struct Verifiers(Mutex<HashMap<Handle, CookieVerifier>>);

impl Verifiers {
    /// Returns the verifier to send with a cookie of a directory. If it was forgotten this is zero,
    /// which the server refuses if it uses verifiers.
    pub(crate) fn of(&self, dir: &Handle, cookie: u64) -> CookieVerifier {
        if cookie == 0 {
            return CookieVerifier::default();
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(dir).copied().unwrap_or_default()
    }

    /// Remembers the verifier of a directory. A zero verifier is the default and is not stored.
    pub(crate) fn note(&self, dir: &Handle, verifier: CookieVerifier) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if verifier == CookieVerifier::default() {
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
