//! Deny modes against operations without an open: READ and WRITE of NFSv3.

use std::time::Duration;

use crate::courtesy::Obstacle;
use crate::sync::atomic::Ordering;
use crate::{Engine, FileKey, Result};

impl Engine {
    /// Returns whether any open denies access to others. The cost is one atomic load.
    #[must_use]
    pub fn has_denies(&self) -> bool {
        self.files.denies.load(Ordering::Acquire) > 0
    }

    /// Checks an access without an open (bits of [`crate::Share`]) against the deny modes of a
    /// file. The shares of the hosts of NLM with these names do not count, since a host checks its
    /// own programs itself. Clients with an expired lease are evicted if they deny the access.
    ///
    /// # Errors
    /// [`crate::Error::ShareDenied`].
    pub fn check_denied(
        &self,
        now: Duration,
        hosts: &[&[u8]],
        (key, access): (&FileKey, u32),
    ) -> Result<()> {
        let Some(file) = self.files.get(key) else { return Ok(()) };
        // Check the shares first: the names of all clients are behind one mutex.
        if file.state().shares.denied(&[], access).is_none() {
            return Ok(());
        }
        let names = self.clients.names();
        let mine = hosts.iter().filter_map(|name| names.host(name)).map(|host| host.id);
        let mine: Vec<_> = mine.collect();
        drop(names);
        self.unless_expired(now, || {
            let denied = file.state().shares.denied(&mine, access);
            denied.map_or(Ok(()), |holder| Err(Obstacle::Share(holder)))
        })
    }
}
