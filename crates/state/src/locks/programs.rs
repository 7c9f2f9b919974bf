//! Locks that clients hold together against programs on the server.

use crate::{ByteRange, Engine, FileKey, Parts};

impl Engine {
    /// Bytes that a client has let go of, if that is to be told ([`crate::Settings::locals`]): what
    /// is held of them now, [`Engine::held`] tells.
    #[must_use]
    pub fn poll_unlocked(&self) -> Option<(FileKey, ByteRange)> {
        self.unlocked.pop()
    }

    /// Returns whether there are bytes or files that clients have let go of; costs a look at two
    /// numbers.
    #[must_use]
    pub fn has_freed(&self) -> bool {
        !self.unlocked.is_empty() || !self.undelegated.is_empty()
    }

    /// Returns the number of byte ranges that clients hold of a file, and their locks within
    /// `range` in order and without gaps; no locks if there are more than `most` ranges.
    #[must_use]
    pub fn held(&self, file: &FileKey, range: ByteRange, most: usize) -> (usize, Parts) {
        let held = self.files.look(file, |file| {
            let locks = &file.state().locks;
            let (count, _) = locks.counts();
            let counted = (1..=most).contains(&count);
            (count, if counted { locks.united(range) } else { Vec::new() })
        });
        held.unwrap_or_default()
    }
}
