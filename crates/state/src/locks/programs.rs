//! The union of all clients' locks, which is enforced against programs on the server.

use crate::{ByteRange, Engine, FileKey, Parts};

impl Engine {
    /// Returns bytes that a client has released, if the shell asked for that
    /// ([`crate::Settings::locals`]). [`Engine::held`] returns the locks that remain on them.
    #[must_use]
    pub fn poll_unlocked(&self) -> Option<(FileKey, ByteRange)> {
        self.unlocked.pop()
    }

    /// Returns whether clients have released bytes or files. The cost is two atomic loads.
    #[must_use]
    pub fn has_freed(&self) -> bool {
        !self.unlocked.is_empty() || !self.undelegated.is_empty()
    }

    /// Returns the number of byte ranges of a file that clients have locked, and the union of their
    /// locks within `range`, in order and without gaps. The union is empty if there are more than
    /// `most` ranges.
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
