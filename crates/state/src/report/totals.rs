//! Counters of what happened since the server started.

use crate::Engine;

/// Counts of events since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Recalls of delegations that were sent; one that had to be sent again counts once.
    pub recalls_sent: u64,
    /// Delegations given back while they were recalled.
    pub recalls_returned: u64,
    /// Recalls that were not heeded in time.
    pub recalls_overdue: u64,
    /// Number of CB_RECALL_ANY: requests to keep fewer delegations, of the client's choice.
    pub recalls_any: u64,
    /// Number of requests to sessions to use fewer slots.
    pub slot_recalls: u64,
    /// Number of times that slots went because a client had followed.
    pub slot_recalls_heeded: u64,
    /// Delegations that were taken back by force: not heeded in time, or with their client.
    pub delegations_revoked: u64,
    /// Number of waits for locks.
    pub lock_waits: u64,
    /// Requests that were answered as they had been before.
    pub replies_again: u64,
    /// Clients that were sent away with all they had: by an administrator, or because their lease
    /// was over.
    pub clients_evicted: u64,
}

impl Engine {
    /// Returns the counts so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let counters = &self.counters;
        Totals {
            recalls_sent: counters.recalls_sent.get(),
            recalls_returned: counters.recalls_returned.get(),
            recalls_overdue: counters.recalls_overdue.get(),
            recalls_any: counters.recalls_any.get(),
            slot_recalls: counters.slot_recalls.get(),
            slot_recalls_heeded: counters.slot_recalls_heeded.get(),
            delegations_revoked: counters.revoked.get(),
            lock_waits: counters.lock_waits.get(),
            replies_again: counters.replies_again.get(),
            clients_evicted: counters.evicted.get(),
        }
    }
}
