//! Counters of events since the server started.

use crate::Engine;
use crate::counters::Count;

/// Counts of events since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Number of recalls of delegations and layouts. A recall that was sent again counts once.
    pub recalls_sent: u64,
    /// Number of delegations and layouts that were returned while they were recalled.
    pub recalls_returned: u64,
    /// Number of recalls that the client did not answer in time.
    pub recalls_overdue: u64,
    /// Number of delegations of directories that were granted.
    pub directories_granted: u64,
    /// Number of requests for delegations of directories that were refused, by the reasons of
    /// [`crate::NoDirectory::ALL`].
    pub directories_refused: [u64; 6],
    /// Number of delegations of directories whose recall began.
    pub directories_recalled: u64,
    /// Number of notifications of changes in directories: one for each change and each holder.
    pub directory_notices: u64,
    /// Notifications of changed attributes of objects in directories, one for each object and
    /// holder.
    pub child_notices: u64,
    /// Number of CB_NOTIFYs that carried them.
    pub directory_notice_calls: u64,
    /// Number of calls that delegations of directories have saved, as far as they have ended:
    /// estimated from how often their clients looked before.
    pub directory_calls_saved: u64,
    /// Number of calls that delegations of directories have caused: four for a recall, one for a
    /// CB_NOTIFY.
    pub directory_calls_caused: u64,
    /// Number of CB_RECALL_ANY, which ask clients to return delegations of their choice.
    pub recalls_any: u64,
    /// Number of times that the target of a session's slots was lowered.
    pub slot_recalls: u64,
    /// Number of times that slots were freed because a client had followed a lower target.
    pub slot_recalls_heeded: u64,
    /// Number of delegations that were revoked, because a recall was not answered, their client was
    /// evicted, or the right to the file had ended.
    pub delegations_revoked: u64,
    /// Number of opens, lock states and delegations that were revoked because the right to the file
    /// had ended.
    pub rights_ended: u64,
    /// Number of waits for locks.
    pub lock_waits: u64,
    /// Number of retries that were answered from a kept reply.
    pub replies_again: u64,
    /// Number of clients that were evicted with their state: by an administrator, or because their
    /// lease had expired.
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
            directories_granted: counters.directories_granted.get(),
            directories_refused: counters.directories_refused.each_ref().map(Count::get),
            directories_recalled: counters.directories_recalled.get(),
            directory_notices: counters.directory_notices.get(),
            child_notices: counters.child_notices.get(),
            directory_notice_calls: counters.directory_notice_calls.get(),
            directory_calls_saved: counters.directory_calls_saved.get(),
            directory_calls_caused: counters.directory_calls_caused.get(),
            recalls_any: counters.recalls_any.get(),
            slot_recalls: counters.slot_recalls.get(),
            slot_recalls_heeded: counters.slot_recalls_heeded.get(),
            delegations_revoked: counters.revoked.get(),
            rights_ended: counters.rights_ended.get(),
            lock_waits: counters.lock_waits.get(),
            replies_again: counters.replies_again.get(),
            clients_evicted: counters.evicted.get(),
        }
    }
}
