use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::Error;

use crate::accepting::Accepting;
use crate::{Handshake, ServerKey, Trust};

/// Begins TLS on the server's side, with the current key and trust.
pub struct Acceptor(ArcSwap<Accepting>);

impl Acceptor {
    /// Makes an acceptor with this key and trust.
    ///
    /// # Errors
    /// The key cannot be used with TLS 1.3.
    pub fn new(key: &ServerKey, trust: Trust) -> Result<Self, Error> {
        Ok(Self(ArcSwap::from_pointee(Accepting::new(key, trust)?)))
    }

    /// Uses another key and trust from the next handshake on. Open connections keep theirs.
    ///
    /// # Errors
    /// The key cannot be used with TLS 1.3; everything then stays the same.
    pub fn renew(&self, key: &ServerKey, trust: Trust) -> Result<(), Error> {
        self.0.store(Arc::new(Accepting::new(key, trust)?));
        Ok(())
    }

    /// Begins a handshake on the server's side.
    ///
    /// # Errors
    /// The system supplied no random bytes.
    pub fn begin(&self) -> Result<Box<Handshake>, Error> {
        Handshake::new(Arc::clone(&self.0.load())).map(Box::new)
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}
