use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::Error;

use crate::accepting::Accepting;
use crate::{Handshake, ServerKey, Trust};

/// Begins TLS on the server's side, with the key and the trust of the moment.
pub struct Acceptor(ArcSwap<Accepting>);

impl Acceptor {
    /// Accepts with this key and this trust.
    ///
    /// # Errors
    /// The key cannot be used with TLS 1.3.
    pub fn new(key: &ServerKey, trust: Trust) -> Result<Self, Error> {
        Ok(Self(ArcSwap::from_pointee(Accepting::new(key, trust)?)))
    }

    /// Uses another key and another trust from the next handshake on. Connections that are open
    /// keep theirs.
    ///
    /// # Errors
    /// The key cannot be used with TLS 1.3; everything stays as it was then.
    pub fn renew(&self, key: &ServerKey, trust: Trust) -> Result<(), Error> {
        self.0.store(Arc::new(Accepting::new(key, trust)?));
        Ok(())
    }

    /// The server's end of a new handshake.
    ///
    /// # Errors
    /// There are no random bytes.
    pub fn begin(&self) -> Result<Box<Handshake>, Error> {
        Handshake::new(Arc::clone(&self.0.load())).map(Box::new)
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}
