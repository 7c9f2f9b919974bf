//! Recalls of delegations that conflict with programs on the server.

use std::sync::Arc;
use std::time::Duration;

use crate::file::File;
use crate::{DelegationKind, Engine, FileKey, Share};

impl Engine {
    /// Returns the kind of the strongest delegation of a file.
    #[must_use]
    pub fn delegated(&self, file: &FileKey) -> Option<DelegationKind> {
        self.files.look(file, |file| file.state().delegations.strongest()).flatten()
    }

    /// Recalls the delegations of a file because a program on the server waits for it. The program
    /// continues at `until` in any case. Delegations that are not returned by then are revoked,
    /// even if the client has had less than a lease's time (RFC 8881, 10.4.5): the client must not
    /// rely on its delegation while the program uses the file.
    pub fn program_waits(&self, now: Duration, key: &FileKey, until: Duration) {
        if let Some(file) = self.recall_for_program(now, key) {
            file.state().delegations.end_recalls_by(until);
        }
    }

    /// Recalls the delegations of a file because a program on the server has renamed, removed or
    /// linked it, or changed its attributes. The program does not wait, and the client has a
    /// lease's time.
    pub fn program_changed(&self, now: Duration, key: &FileKey) {
        let _ = self.recall_for_program(now, key);
    }

    fn recall_for_program(&self, now: Duration, key: &FileKey) -> Option<Arc<File>> {
        let file = self.files.get(key)?;
        let share = Share::access(Share::BOTH);
        // The result is ignored: it says only that the recall is under way.
        let _ = self.unless_expired(now, || self.try_break(now, &file, (None, share)));
        Some(file)
    }

    /// Returns a file of which a delegation has ended, if the shell asked for that
    /// ([`crate::Settings::locals`]). [`Engine::delegated`] returns what is still delegated of it.
    #[must_use]
    pub fn poll_undelegated(&self) -> Option<FileKey> {
        self.undelegated.pop()
    }
}
