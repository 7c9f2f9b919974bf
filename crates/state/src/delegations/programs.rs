//! Programs on the server that want a file which is delegated to a client.

use std::sync::Arc;
use std::time::Duration;

use crate::file::File;
use crate::{DelegationKind, Engine, FileKey, Share};

impl Engine {
    /// Returns the strongest delegation of a file.
    #[must_use]
    pub fn delegated(&self, file: &FileKey) -> Option<DelegationKind> {
        self.files.look(file, |file| file.state().delegations.strongest()).flatten()
    }

    /// Recalls a file because a program on the server waits for it, and goes on at `until`
    /// whatever happens: what has not been given back by then is revoked then, even if a lease's
    /// time has not passed (RFC 8881, 10.4.5 would give the client that), so that the two never
    /// both believe that they are alone.
    pub fn program_waits(&self, now: Duration, key: &FileKey, until: Duration) {
        if let Some(file) = self.recall_for_program(now, key) {
            file.state().delegations.end_recalls_by(until);
        }
    }

    /// Recalls a file because a program on the server has renamed, removed or linked it, or changed
    /// its attributes. The program does not wait, and the holder has a lease's time.
    pub fn program_changed(&self, now: Duration, key: &FileKey) {
        let _ = self.recall_for_program(now, key);
    }

    fn recall_for_program(&self, now: Duration, key: &FileKey) -> Option<Arc<File>> {
        let file = self.files.get(key)?;
        let share = Share::access(Share::BOTH);
        // A program that waits is told of the recall when it need not wait any more.
        let _ = self.unless_expired(now, || self.try_break(now, &file, (None, share)));
        Some(file)
    }

    /// A file of which a delegation is over, if that is to be told ([`crate::Settings::locals`]):
    /// what is delegated of it now, [`Engine::delegated`] tells.
    #[must_use]
    pub fn poll_undelegated(&self) -> Option<FileKey> {
        self.undelegated.pop()
    }
}
