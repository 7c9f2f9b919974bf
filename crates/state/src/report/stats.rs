use crate::sync::atomic::Ordering;
use crate::{Client, Engine};

/// Number of objects in memory, for metrics, and for tests that nothing leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Number of clients, confirmed or not.
    pub clients: usize,
    /// Number of sessions.
    pub sessions: usize,
    /// Number of files that clients have open, locked or delegated.
    pub files: usize,
    /// Number of states of all clients: opens, locks, delegations, layouts, and closed opens
    /// that are kept for a retry.
    pub states: usize,
    /// Number of owners of all clients.
    pub owners: usize,
    /// Number of opens of all clients.
    pub opens: usize,
    /// Number of locked byte ranges of all owners.
    pub locks: usize,
    /// Number of locks that are waited for, or offered to a waiting owner.
    pub waits: usize,
    /// Number of delegations of files and directories.
    pub delegations: usize,
    /// Number of delegations of directories.
    pub directories: usize,
    /// Number of layouts of all clients.
    pub layouts: usize,
    /// Bytes that kept replies may take.
    pub reply_cache_bytes: usize,
    /// Bytes that are counted for the state of all clients.
    pub held_bytes: usize,
}

/// Amounts in use of the bounded memory and tables of the engine, each with its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupied {
    /// Clients, confirmed or not.
    pub clients: (usize, usize),
    /// Delegations of all clients.
    pub delegations: (usize, usize),
    /// Bytes that kept replies may take.
    pub reply_cache_bytes: (usize, usize),
    /// Bytes that are counted for the state of all clients.
    pub held_bytes: (usize, usize),
}

impl Engine {
    /// Returns how much of each bound is in use. Unlike [`Engine::census`], it locks no client.
    #[must_use]
    pub fn occupied(&self) -> Occupied {
        let limits = &self.settings.limits;
        Occupied {
            clients: (self.clients.len(), limits.clients),
            delegations: (self.files.delegations.load(Ordering::Acquire), limits.delegations),
            reply_cache_bytes: (self.reply_cache.reserved_bytes(), limits.reply_cache_bytes),
            held_bytes: (self.held.reserved_bytes(), limits.held_bytes),
        }
    }

    /// Counts all objects. It locks each client and each file for a moment.
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
            directories: sum(|client| client.state().holdings.counts().directories),
            layouts: sum(|client| client.state().holdings.counts().layouts),
            reply_cache_bytes: self.reply_cache.reserved_bytes(),
            held_bytes: self.held.reserved_bytes(),
        }
    }
}
