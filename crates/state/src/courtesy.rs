//! Clients whose lease has expired make way for others (courteous server, RFC 8881, 8.4.2.4).

use std::time::Duration;

use crate::client_state::client_of_lock_owner;
use crate::file::Holder;
use crate::{ByteRange, ClientId, Conflict, Engine, Error, LockType, Result};

/// What stands in the way of an operation, and who: it may be one whose lease is over.
pub(crate) enum Obstacle {
    /// Somebody's open.
    Share(Holder),
    /// Somebody's delegation.
    Delegation(Holder),
    /// Nobody's.
    Error(Error),
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// How often an operation looks again after somebody whose lease is over was sent away. Each time
/// it is another; who comes in between has a lease. Clients by the thousand that went home with
/// one file open are sent away in milliseconds.
pub(crate) const EVICTIONS_MAX: usize = 4096;

/// Why a lock cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockRefusal {
    /// Somebody has it (`LOCK4denied`).
    Denied {
        /// Which bytes of it.
        range: ByteRange,
        /// Shared or alone.
        kind: LockType,
        /// Whose.
        client: ClientId,
        /// Which of its owners.
        owner: Box<[u8]>,
    },
    /// For another reason.
    Error(Error),
}

impl From<Error> for LockRefusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Why a lock cannot be had, before the one who has it was looked at.
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
    /// Does something again as long as only clients whose lease is over stand in its way.
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

    /// Sends a client away whose lease is over; false if it has one.
    pub(crate) fn give_way(&self, now: Duration, holder: Holder) -> bool {
        let Some(client) = self.clients.get(holder.client) else {
            // It is being sent away right now.
            return true;
        };
        let expired = self.has_expired(now, &client);
        if expired {
            self.evict(now, &client);
        }
        expired
    }

    /// Does something again as long as only locks of clients whose lease is over stand in its way;
    /// tells who has the lock that does.
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
