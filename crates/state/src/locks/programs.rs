//! What clients hold together against programs on the server.

use crate::{ByteRange, Engine, FileKey, Parts};

impl Engine {
    /// Bytes that a client has let go of, if that is to be told ([`crate::Settings::locals`]): what
    /// is held of them now, [`Engine::held`] tells.
    #[must_use]
    pub fn poll_unlocked(&self) -> Option<(FileKey, ByteRange)> {
        self.unlocked.pop()
    }

    /// Whether there are bytes or files that clients have let go of; costs a look at two numbers.
    #[must_use]
    pub fn has_freed(&self) -> bool {
        !self.unlocked.is_empty() || !self.undelegated.is_empty()
    }

    /// How many byte ranges of a file clients hold, and what they together hold of one, in order
    /// and without gaps: nothing where there are none or more than `most`.
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
