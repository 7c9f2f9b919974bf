use std::sync::Arc;

use comity_vfs::{Fs, Handle, Result};

/// A wait until one or two objects are on stable storage. It outlives the view of its request, so
/// that the reply can be sent after it.
pub struct Barrier {
    fs: Arc<dyn Fs>,
    first: Handle,
    second: Option<Handle>,
}

impl Barrier {
    pub(crate) fn new(fs: Arc<dyn Fs>, first: Handle, second: Option<Handle>) -> Self {
        Self { fs, first, second }
    }

    /// Waits until all earlier changes of the objects are on stable storage. It is no failure if
    /// another caller has removed an object meanwhile: its changes and its removal are stable then.
    ///
    /// # Errors
    /// [`comity_vfs::Status`] if the medium failed or is missing: stability must not be promised
    /// then.
    pub fn wait(&self) -> Result<()> {
        self.fs.commit(&self.first)?;
        if let Some(second) = &self.second {
            self.fs.commit(second)?;
        }
        Ok(())
    }
}
