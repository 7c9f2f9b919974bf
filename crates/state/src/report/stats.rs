use crate::sync::atomic::Ordering;
use crate::{Client, Engine};

/// Number of things in memory; for metrics, and for tests that nothing is left over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Clients, confirmed or not.
    pub clients: usize,
    /// Sessions.
    pub sessions: usize,
    /// Files that clients have open, locked or delegated.
    pub files: usize,
    /// States of all clients: opens, locks, delegations, and closed opens that are kept for a
    /// retry.
    pub states: usize,
    /// Owners of all clients.
    pub owners: usize,
    /// Opens of all clients.
    pub opens: usize,
    /// Byte ranges that are locked, by any owner.
    pub locks: usize,
    /// Locks that are waited for, or offered to a waiter.
    pub waits: usize,
    /// Delegations.
    pub delegations: usize,
    /// Bytes that kept replies may take.
    pub reply_cache_bytes: usize,
    /// Bytes that are counted for all that clients hold.
    pub held_bytes: usize,
}

impl Engine {
    /// Counts everything. It looks at each client and at each file for a moment.
    #[must_use]
    pub fn census(&self) -> Census {
        let clients = self.clients.all();
        let sum = |count: fn(&Client) -> usize| clients.iter().map(|client| count(client)).sum();
        let (mut locks, mut waits) = (0, 0);
        self.files.each(|file| {
            let (held, waiting) = file.state().locks.counts();
            (locks, waits) = (locks + held, waits + waiting);
        });
        Census {
            clients: clients.len(),
            sessions: self.sessions.len(),
            files: self.files.len(),
            states: sum(|client| client.state().holdings.len()),
            owners: sum(|client| client.state().holdings.owners_len()),
            opens: sum(|client| client.state().holdings.counts().opens),
            locks,
            waits,
            delegations: self.files.delegations.load(Ordering::Acquire),
            reply_cache_bytes: self.reply_cache.reserved_bytes(),
            held_bytes: self.held.reserved_bytes(),
        }
    }
}
