//! The grace period: after a restart, clients that had state before it may reclaim it first (RFC
//! 8881, 8.4.2).

use std::time::Duration;

use crate::{Caller, Client, Engine, Error, Record, Result};

impl Engine {
    /// Returns whether only reclaims are accepted in all exports.
    #[must_use]
    pub fn is_in_grace(&self) -> bool {
        self.grace.is_on()
    }

    /// RECLAIM_COMPLETE for all file systems (RFC 8881, 18.51). The client gets a record, and the
    /// reply must wait for [`Engine::unstored`]. A client that has completed already completes its
    /// reclaims in exports that came here later.
    ///
    /// # Errors
    /// [`Error::WrongCred`]: the client belongs to another principal. [`Error::CompleteAlready`].
    pub fn reclaim_complete(&self, now: Duration, client: &Client, caller: Caller) -> Result<()> {
        self.reclaim_complete_where(now, (client, caller), |_| true)
    }

    /// The same, sent to an address of some exports (`has_address`). A client that came to several
    /// heads at several addresses takes them for several servers, although it has the same name at
    /// all of them; if one head has all these addresses now, the client reclaims and completes at
    /// each of them.
    ///
    /// # Errors
    /// As above.
    pub fn reclaim_complete_where(
        &self,
        now: Duration,
        (client, caller): (&Client, Caller),
        has_address: impl Fn(u32) -> bool,
    ) -> Result<()> {
        if !client.is_principal(&caller) {
            return Err(Error::WrongCred);
        }
        let mut state = client.live()?;
        let is_complete_already = std::mem::replace(&mut state.reclaim_complete, true);
        drop(state);
        if !is_complete_already {
            self.record(client.record());
        }
        self.grace.complete(client);
        self.each_export_grace(|export, grace| match has_address(export) {
            true => grace.complete(client),
            false => grace.complete_elsewhere(client),
        });
        if is_complete_already {
            return Err(Error::CompleteAlready);
        }
        self.end_grace_if_due(now);
        Ok(())
    }

    /// Keeps the grace period on while `held`, unless all clients complete: some files are not
    /// served yet, and their state cannot be reclaimed.
    pub fn hold_grace(&self, held: bool) {
        self.grace.hold(held);
    }

    /// Lets a grace period that is on last its whole time again, because files are served from now
    /// on whose state could not be reclaimed before.
    pub fn restart_grace(&self, now: Duration) {
        self.grace.restart(now);
    }

    /// Ends the grace period when its time is over, or when all clients that could reclaim have
    /// completed.
    pub(crate) fn end_grace_if_due(&self, now: Duration) {
        if !self.is_in_grace() || !(self.grace.is_over(now) || self.grace.is_idle(now)) {
            return;
        }
        // A client that did not return loses its right to reclaim before others can take its state:
        // the records are appended first, and no reply leaves before they are stored.
        self.grace.end(|client| self.record(Record::Forget(client)));
    }

    /// Returns the longest time for which only reclaims will still be accepted; zero outside grace.
    /// While the grace period is held, it is the time after the hold.
    #[must_use]
    pub fn grace_left(&self, now: Duration) -> Duration {
        if self.is_in_grace() { self.grace.left(now) } else { Duration::ZERO }
    }
}
