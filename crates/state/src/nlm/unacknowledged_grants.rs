//! Locks that were granted to waiting hosts of NLM, until the host has answered NLM_GRANTED. The
//! answer may be lost.

use std::sync::Arc;
use std::time::Duration;

use super::locks::HostLock;
use crate::client_state::{ClientState, OwnerKind, UnacknowledgedGrant};
use crate::{ByteRange, Client, Engine, LockType};

impl Engine {
    /// Notes that the host has acknowledged the lock.
    pub fn grant_known(&self, host: &Client, lock: &HostLock<'_>) {
        drop(take(host, lock));
    }

    /// Takes back a lock that the host refused or did not acknowledge, and restores the locks that
    /// it had before. Changes nothing if the host has requested the lock again and got an answer.
    pub fn withdraw_grant(&self, now: Duration, host: &Arc<Client>, lock: &HostLock<'_>) {
        let Some(UnacknowledgedGrant { before, .. }) = take(host, lock) else { return };
        let HostLock { range, kind, .. } = *lock;
        // The earlier ranges are restored even if the bound of ranges is reached.
        let _ = self.change_host(host, lock, |(owner, _), on_file, offers| {
            // Other owners may have read locks by now where this owner had one.
            let left = before.into_iter().map(|(piece, had)| (piece, had.min(kind)));
            on_file.locks.reduce(now, (owner, range), left, offers);
            Ok(())
        });
        self.tell_unlocked(lock.file, lock.range);
        self.tidy_host(now, host, lock);
    }
}

impl ClientState {
    /// Notes that an owner has a lock. If NLM_GRANTED still has to tell the owner, `before`
    /// contains the locks that it had; if the reply has told it, `before` is `None`.
    pub(crate) fn note_granted(
        &mut self,
        owner: u32,
        lock: &HostLock<'_>,
        before: Option<Vec<(ByteRange, LockType)>>,
    ) {
        let HostLock { file, range, kind, .. } = *lock;
        self.granted.retain(|it| it.owner != owner || it.file != file || !it.range.overlaps(range));
        let granted = before.map(|before| UnacknowledgedGrant { owner, file, range, kind, before });
        self.granted.extend(granted);
    }

    /// Forgets the unacknowledged grants of a range that its owner has unlocked.
    pub(crate) fn forget_granted(&mut self, lock: &HostLock<'_>) {
        if let Some(owner) = self.holdings.find_owner(OwnerKind::Lock, lock.owner) {
            self.note_granted(owner, lock, None);
        }
    }
}

/// Removes and returns the unacknowledged grant of exactly this lock.
fn take(host: &Client, lock: &HostLock<'_>) -> Option<UnacknowledgedGrant> {
    let mut state = host.state();
    let owner = state.holdings.find_owner(OwnerKind::Lock, lock.owner)?;
    let wanted = (owner, lock.file, lock.range, lock.kind);
    let is_it = |it: &UnacknowledgedGrant| (it.owner, it.file, it.range, it.kind) == wanted;
    let at = state.granted.iter().position(is_it)?;
    Some(state.granted.swap_remove(at))
}
