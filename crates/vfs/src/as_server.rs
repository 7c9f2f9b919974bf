use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::Result;

static RESTORE: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Evidence that the calling thread has the server's own identity. Functions that use paths not
/// named by a caller need it. A thread keeps the identity of its last caller, who may have fewer
/// rights than the server, or more. The evidence must stay in its thread and must not be kept over
/// a verb of an [`crate::Fs`], which sets a caller's identity again.
#[derive(Debug)]
pub struct AsServer(PhantomData<*const ()>);

impl AsServer {
    /// Gives the calling thread the server's own identity.
    ///
    /// # Errors
    /// [`crate::Status`] if the kernel does not permit it.
    pub fn here() -> Result<Self> {
        RESTORE.get().map_or(Ok(()), |restore| restore())?;
        Ok(Self(PhantomData))
    }

    /// Sets the function that gives a thread the server's identity, for a backend whose threads
    /// take on the identities of callers. Later calls are ignored.
    pub fn restored_by(restore: fn() -> Result<()>) {
        // A process has only one way to change its identity, so a second function would be the
        // same.
        let _ = RESTORE.set(restore);
    }
}
