//! The check whether a file is in use.

use std::time::Duration;

use crate::{Engine, FileKey};

impl Engine {
    /// Returns whether any client or host of NLM has the file open, locked or delegated, or waits
    /// for a lock of it.
    #[must_use]
    pub fn is_held(&self, now: Duration, key: &FileKey) -> bool {
        self.files.look(key, |file| !file.state().is_idle(now)).unwrap_or(false)
    }
}
