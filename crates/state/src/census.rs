use crate::sync::atomic::Ordering;
use crate::{Client, Engine};

/// How much is remembered; for metrics, and to see that nothing stays behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Clients, confirmed or not.
    pub clients: usize,
    /// Sessions.
    pub sessions: usize,
    /// Files of which anybody has anything.
    pub files: usize,
    /// States of all clients: opens, locks, delegations, and what is kept for a retry.
    pub states: usize,
    /// Owners of all clients.
    pub owners: usize,
    /// Delegations.
    pub delegations: usize,
    /// Bytes that kept replies may take.
    pub reply_cache_bytes: usize,
}

impl Engine {
    /// Counts everything. It looks at each client for a moment.
    #[must_use]
    pub fn census(&self) -> Census {
        let clients = self.clients.all();
        let sum = |count: fn(&Client) -> usize| clients.iter().map(|client| count(client)).sum();
        Census {
            clients: clients.len(),
            sessions: self.sessions.len(),
            files: self.files.len(),
            states: sum(|client| client.state().holdings.states().count()),
            owners: sum(|client| client.state().holdings.owners().count()),
            delegations: self.files.delegations.load(Ordering::Acquire),
            reply_cache_bytes: self.reply_cache.reserved_bytes(),
        }
    }
}
