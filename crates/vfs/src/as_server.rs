use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::Result;

static RESTORE: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Evidence that the calling thread has the server's own identity. Functions that look at paths
/// which no caller named demand it. A thread that serves keeps the identity of its last caller, who
/// may have fewer rights than the server, or more. The evidence stays in its thread and must not be
/// kept over a verb of an [`crate::Fs`], which takes on a caller's identity again.
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
        // A process can change its identity in one way only.
        let _ = RESTORE.set(restore);
    }
}
