//! Clients whose lease has expired make way for others (courteous server, RFC 8881, 8.4.2.4).

use std::time::Duration;

use crate::client_state::client_of_lock_owner;
use crate::file::Holder;
use crate::{ByteRange, ClientId, Conflict, Engine, Error, LockType, Result};

/// The state that an operation conflicts with, and its holder, whose lease may have expired.
pub(crate) enum Obstacle {
    /// An open.
    Share(Holder),
    /// A delegation.
    Delegation(Holder),
    /// An error that is no conflict.
    Error(Error),
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Most expired clients that one operation evicts. A retry cannot meet the same holder again, since
/// new holders have a lease. Thousands of clients that disappeared with one file open are evicted
/// within milliseconds.
pub(crate) const EVICTIONS_MAX: usize = 4096;

/// The reason why a lock is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockRefusal {
    /// Another owner has a conflicting lock (`LOCK4denied`).
    Denied {
        /// The bytes of the conflicting lock.
        range: ByteRange,
        /// Read or write.
        kind: LockType,
        /// The client that has it.
        client: ClientId,
        /// The owner that has it.
        owner: Box<[u8]>,
    },
    /// Another error.
    Error(Error),
}

impl From<Error> for LockRefusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The reason why a lock is refused, before the holder of the conflicting lock is looked up.
pub(crate) enum Blocked {
    By(Conflict),
    Error(Error),
}

impl From<Error> for Blocked {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Conflict> for Blocked {
    fn from(conflict: Conflict) -> Self {
        Self::By(conflict)
    }
}

impl Engine {
    /// Retries an operation as long as it conflicts only with clients whose lease has expired.
    pub(crate) fn unless_expired<T>(
        &self,
        now: Duration,
        mut attempt: impl FnMut() -> Result<T, Obstacle>,
    ) -> Result<T> {
        for _ in 0..EVICTIONS_MAX {
            let (holder, error) = match attempt() {
                Ok(done) => return Ok(done),
                Err(Obstacle::Error(error)) => return Err(error),
                Err(Obstacle::Share(holder)) => (holder, Error::ShareDenied),
                Err(Obstacle::Delegation(holder)) => (holder, Error::Delay),
            };
            if !self.give_way(now, holder) {
                return Err(error);
            }
        }
        Err(Error::Delay)
    }

    /// Evicts a client whose lease has expired; returns false if it has not.
    pub(crate) fn give_way(&self, now: Duration, holder: Holder) -> bool {
        let Some(client) = self.clients.get(holder.client) else {
            // Another thread evicts it right now.
            return true;
        };
        let expired = self.has_expired(now, &client);
        if expired {
            self.expire(now, &client);
        }
        expired
    }

    /// Retries a lock operation as long as it conflicts only with locks of clients whose lease has
    /// expired. Returns the holder of the lock that it still conflicts with.
    pub(crate) fn unless_courteous<T>(
        &self,
        now: Duration,
        mut attempt: impl FnMut() -> Result<T, Blocked>,
    ) -> Result<T, LockRefusal> {
        for _ in 0..EVICTIONS_MAX {
            let conflict = match attempt() {
                Ok(done) => return Ok(done),
                Err(Blocked::Error(error)) => return Err(error.into()),
                Err(Blocked::By(conflict)) => conflict,
            };
            let client = self.clients.id(client_of_lock_owner(conflict.owner));
            if !self.give_way(now, Holder { client, state: 0 }) {
                return Err(self.denied(client, conflict));
            }
        }
        Err(Error::Delay.into())
    }

    fn denied(&self, client: ClientId, conflict: Conflict) -> LockRefusal {
        let holder = self.clients.get(client);
        let owner = holder.and_then(|holder| {
            let state = holder.state();
            state.holdings.owner(conflict.owner as u32).map(|owner| owner.name.clone())
        });
        let Conflict { range, kind, .. } = conflict;
        LockRefusal::Denied { range, kind, client, owner: owner.unwrap_or_default() }
    }
}
