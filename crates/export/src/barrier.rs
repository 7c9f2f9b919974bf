use std::sync::Arc;

use comity_vfs::{Fs, Handle, Result};

/// A wait until one or two objects are on stable storage. It outlives the view of its request, so
/// that the reply can be held back until it is over.
pub struct Barrier {
    fs: Arc<dyn Fs>,
    first: Handle,
    second: Option<Handle>,
}

impl Barrier {
    pub(crate) fn new(fs: Arc<dyn Fs>, first: Handle, second: Option<Handle>) -> Self {
        Self { fs, first, second }
    }

    /// Waits until all that was done to the objects before is on stable storage. An object that
    /// somebody else has removed meanwhile is no failure: its changes were made, and its removal is
    /// stable too.
    ///
    /// # Errors
    /// [`comity_vfs::Status`] if the medium failed or is not there: nothing may be promised then.
    pub fn wait(&self) -> Result<()> {
        self.fs.commit(&self.first)?;
        if let Some(second) = &self.second {
            self.fs.commit(second)?;
        }
        Ok(())
    }
}
