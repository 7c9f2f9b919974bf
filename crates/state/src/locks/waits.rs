//! Attempts to lock, and the time that an owner may wait for a lock.

use std::sync::Arc;
use std::time::Duration;

use crate::courtesy::Blocked;
use crate::file::{File, share_of};
use crate::{Client, ClientProtocol, Engine, Error, Offer, Result, Settings};

impl Engine {
    /// Locks bytes of a file. Returns the number of ranges that are locked then, and the change of
    /// that number. Even a refused lock may make locks of other owners possible; these are added to
    /// `offers`.
    pub(crate) fn lock_in(
        &self,
        file: &Arc<File>,
        now: Duration,
        (client, wish, wait): (&Client, Offer, Option<Duration>),
        offers: &mut Vec<Offer>,
    ) -> Result<(usize, isize), Blocked> {
        let mut on_file = file.state();
        // A host of NLM has no open, so the file may have been delegated a moment ago.
        if on_file.delegations.conflict(Some(client.id), share_of(wish.kind)).is_some() {
            return Err(Error::Delay.into());
        }
        let locks = &mut on_file.locks;
        locks.expire(now, offers);
        let (known, before) = (locks.len(), locks.counts().0);
        if known >= self.settings.limits.locks_per_file {
            return Err(Error::Resource.into());
        }
        let Err(conflict) = locks.lock(now, wish, wait, offers) else {
            let (held, _) = locks.counts();
            return Ok((held, held.cast_signed() - before.cast_signed()));
        };
        if wait.is_some() {
            self.counters.lock_waits.add(usize::from(locks.len() > known));
            self.files.watch(file);
        }
        Err(conflict.into())
    }

    /// Returns the time at which an owner that begins to wait now leaves the queue.
    pub(crate) fn waits_until(&self, now: Duration, client: &Client) -> Duration {
        let Settings { lock_wait, lease, .. } = self.settings;
        now.saturating_add(match client.protocol {
            ClientProtocol::Setclientid => lock_wait.min(lease),
            ClientProtocol::ExchangeId | ClientProtocol::Nlm => lock_wait,
        })
    }

    /// Removes waiting owners and offers of a file whose time is over.
    pub(crate) fn expire_waits(&self, now: Duration, file: &Arc<File>) {
        let mut offers = Vec::new();
        file.state().locks.expire(now, &mut offers);
        self.wake_waiters(file, offers);
    }
}
