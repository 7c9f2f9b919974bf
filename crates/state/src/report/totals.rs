//! Counters of what happened since the server started.

use crate::Engine;

/// What happened since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Recalls of delegations that were sent; one that had to be sent again counts once.
    pub recalls_sent: u64,
    /// Delegations given back while they were recalled.
    pub recalls_returned: u64,
    /// Recalls that were not heeded in time.
    pub recalls_overdue: u64,
    /// How often clients were asked to keep fewer delegations, whichever they can spare.
    pub recalls_any: u64,
    /// How often sessions were asked to use fewer slots.
    pub slot_recalls: u64,
    /// How often slots went because a client had followed.
    pub slot_recalls_heeded: u64,
    /// Delegations that were taken back by force: not heeded in time, or with their client.
    pub delegations_revoked: u64,
    /// Locks that somebody had to wait for.
    pub lock_waits: u64,
    /// Requests that were answered as they had been before.
    pub replies_again: u64,
    /// Clients that were sent away with all they had: by an administrator, or because their lease
    /// was over.
    pub clients_evicted: u64,
}

impl Engine {
    /// What happened so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let tally = &self.tally;
        Totals {
            recalls_sent: tally.recalls_sent.get(),
            recalls_returned: tally.recalls_returned.get(),
            recalls_overdue: tally.recalls_overdue.get(),
            recalls_any: tally.recalls_any.get(),
            slot_recalls: tally.slot_recalls.get(),
            slot_recalls_heeded: tally.slot_recalls_heeded.get(),
            delegations_revoked: tally.revoked.get(),
            lock_waits: tally.lock_waits.get(),
            replies_again: tally.replies_again.get(),
            clients_evicted: tally.evicted.get(),
        }
    }
}
