//! Locks of hosts of NLM, beside those of NFSv4 (RFC 1813, appendix II).
//!
//! A host is a client without a lease. It notifies the server when it has restarted, and the server
//! notifies its hosts. A silent host is probed (`probe.rs`).

use std::sync::Arc;
use std::time::Duration;

use super::shares::host_owner;
use crate::client_state::{ClientState, LockState, OwnerKind, StateKind, lock_owner};
use crate::courtesy::Blocked;
use crate::file::{File, FileState, share_of};
use crate::{ByteRange, Client, Engine, Error, FileKey, LockRefusal, LockType, Offer, Result};

/// The number that stands for no open. Locks of hosts belong to no open.
const NO_OPEN: u32 = 0;

/// A lock of a host.
#[derive(Debug, Clone, Copy)]
pub struct HostLock<'a> {
    /// The owner within the host.
    pub owner: &'a [u8],
    /// The file.
    pub file: FileKey,
    /// The bytes.
    pub range: ByteRange,
    /// Read or write.
    pub kind: LockType,
}

/// The kind of a host's request for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockRequestKind {
    /// The lock is granted at once or refused.
    NonBlocking,
    /// If the lock is not free, the host waits for it.
    Blocking,
    /// The lock was offered to the host, which waited for it. NLM_GRANTED is still to be
    /// acknowledged ([`Engine::grant_known`], [`Engine::withdraw_grant`]).
    Offered,
    /// The host held the lock before the server restarted.
    Reclaim,
}

impl Engine {
    /// NLM_LOCK. Returns the number of ranges of the file that are locked now.
    ///
    /// # Errors
    /// - [`LockRefusal::Denied`]: another owner has a lock. With [`LockRequestKind::Blocking`] the
    ///   owner waits, and an effect offers it the lock when it is free.
    /// - [`Error::Grace`], [`Error::NoGrace`], [`Error::ReclaimBad`]: RFC 8881, 8.4.2. A lock that
    ///   the owner has can be reclaimed at any time.
    /// - [`Error::Delay`]: a delegation is being recalled.
    /// - [`Error::Resource`]: a bound is reached; with [`LockRequestKind::Offered`] also if the
    ///   lock is not offered any more.
    pub fn lock_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        lock: &HostLock<'_>,
        request_kind: LockRequestKind,
    ) -> Result<usize, LockRefusal> {
        let is_held = || self.has_locked(host, lock);
        self.may_lock_host(now, host, (&lock.file, is_held), request_kind)?;
        self.break_delegations(now, Some(host), &lock.file, share_of(lock.kind))?;
        let locked =
            self.unless_courteous(now, || self.try_lock_host(now, host, lock, request_kind));
        if matches!(locked, Err(LockRefusal::Error(_))) {
            self.tidy_host(now, host, lock);
        }
        locked
    }

    /// Checks that a host may ask for a lock or a share now. It may always reclaim what it holds: a
    /// server through which it reached this one has told it of a restart, and it reclaims all that
    /// it has locked there.
    pub(crate) fn may_lock_host(
        &self,
        now: Duration,
        host: &Client,
        (file, is_held): (&FileKey, impl FnOnce() -> bool),
        request_kind: LockRequestKind,
    ) -> Result<()> {
        match request_kind {
            LockRequestKind::Reclaim => match self.may_reclaim(now, (host, false), file) {
                Err(Error::NoGrace) if is_held() => Ok(()),
                may => may,
            },
            _ if self.is_in_grace_at(file.export) => Err(Error::Grace),
            _ => Ok(()),
        }
    }

    /// Returns whether an owner has this lock.
    fn has_locked(&self, host: &Client, lock: &HostLock<'_>) -> bool {
        let owner = host.state().holdings.find_owner(OwnerKind::Lock, lock.owner);
        let Some((owner, file)) = owner.zip(self.files.get(&lock.file)) else { return false };
        let wanted =
            Offer { owner: lock_owner(host.id, owner), range: lock.range, kind: lock.kind };
        file.state().locks.has_all(wanted)
    }

    fn try_lock_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        lock: &HostLock<'_>,
        request_kind: LockRequestKind,
    ) -> Result<usize, Blocked> {
        let limits = &self.settings.limits;
        let file = self.file(&lock.file)?;
        let mut state = host.live()?;
        let may =
            request_kind != LockRequestKind::Offered || is_offered(&state, (host, &file), lock);
        if !may || !state.holdings.has_room() {
            return Err(Error::Resource.into());
        }
        let owner = host_owner(&mut state, limits, now, (OwnerKind::Lock, lock.owner))?;
        let number = match state.holdings.find(owner, &file) {
            Some(number) => number,
            None => {
                // A waiting owner gets a state, too, so that it is removed with its host.
                let what =
                    StateKind::Lock(LockState { owner, open: NO_OPEN, ranges: 0, shared: false });
                state.holdings.insert(limits, (now, &file), what)?
            }
        };
        state.holdings.asked(number, host.monitor_state());
        let wish = Offer { owner: lock_owner(host.id, owner), range: lock.range, kind: lock.kind };
        let wait = (request_kind == LockRequestKind::Blocking).then(|| self.waits_until(now, host));
        if wait.is_some() {
            state.holdings.comes_by(owner, lock.file.export);
        }
        let before = (request_kind == LockRequestKind::Offered)
            .then(|| file.state().locks.held_within(wish.owner, lock.range));
        let mut offers = Vec::new();
        let locked =
            self.lock_in(&file, now, (host, wish, wait), &mut offers).map(|(held, more)| {
                state.holdings.count_ranges(number, more);
                state.note_granted(owner, lock, before);
                held
            });
        drop(state);
        self.wake_waiters(&file, offers);
        if matches!(locked, Err(Blocked::By(_))) && wait.is_none() {
            self.tidy_host(now, host, lock);
        }
        locked
    }

    /// NLM_TEST.
    ///
    /// # Errors
    /// The errors of [`Engine::test_lock`].
    pub fn test_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        lock: &HostLock<'_>,
    ) -> Result<(), LockRefusal> {
        self.find_conflict(now, host, lock.owner, (&lock.file, lock.range, lock.kind))
    }

    /// NLM_UNLOCK: frees the locks of the owner in the range.
    ///
    /// # Errors
    /// [`Error::Resource`]: the unlock would split a range, and the bound of ranges is reached.
    pub fn unlock_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        lock: &HostLock<'_>,
    ) -> Result<()> {
        self.change_host(host, lock, |(owner, has_room), on_file, offers| {
            self.may_split(on_file, (owner, lock.range), has_room)?;
            on_file.locks.unlock(now, owner, lock.range, offers);
            Ok(())
        })?;
        host.state().forget_granted(lock);
        self.tell_unlocked(lock.file, lock.range);
        self.tidy_host(now, host, lock);
        Ok(())
    }

    /// NLM_CANCEL: removes the owner from the queue, and takes back a lock that the owner has not
    /// been told of.
    pub fn cancel_host(&self, now: Duration, host: &Arc<Client>, lock: &HostLock<'_>) {
        self.withdraw_grant(now, host, lock);
        // Cancelling allocates nothing, so it cannot fail.
        let _ = self.change_host(host, lock, |(owner, _), on_file, offers| {
            let waiter = Offer { owner, range: lock.range, kind: lock.kind };
            on_file.locks.cancel(now, waiter, offers);
            Ok(())
        });
        self.tidy_host(now, host, lock);
    }

    /// Calls `change` on the locks of a file with the owner's number among all clients, and whether
    /// there is room for more locks.
    pub(crate) fn change_host(
        &self,
        host: &Arc<Client>,
        lock: &HostLock<'_>,
        change: impl FnOnce((u64, bool), &mut FileState, &mut Vec<Offer>) -> Result<()>,
    ) -> Result<()> {
        let mut state = host.state();
        let owner = state.holdings.find_owner(OwnerKind::Lock, lock.owner);
        let (Some(owner), Some(file)) = (owner, self.files.get(&lock.file)) else { return Ok(()) };
        let (mut offers, mut on_file) = (Vec::new(), file.state());
        let (before, _) = on_file.locks.counts();
        let whose = (lock_owner(host.id, owner), state.holdings.has_room());
        let changed = change(whose, &mut on_file, &mut offers);
        let (after, _) = on_file.locks.counts();
        drop(on_file);
        if let Some(number) = state.holdings.find(owner, &file) {
            state.holdings.count_ranges(number, after.cast_signed() - before.cast_signed());
        }
        drop(state);
        self.wake_waiters(&file, offers);
        changed
    }

    /// Forgets the state of an owner that has no locks in a file and waits for none. Forgets the
    /// owner if that was its last state.
    pub(crate) fn tidy_host(&self, now: Duration, host: &Arc<Client>, lock: &HostLock<'_>) {
        let mut state = host.state();
        let Some(file) = self.files.get(&lock.file) else { return };
        if let Some(owner) = state.holdings.find_owner(OwnerKind::Lock, lock.owner) {
            let number = state.holdings.find(owner, &file);
            let is_idle = |_: &u32| !file.state().locks.knows(lock_owner(host.id, owner));
            if let Some(number) = number.filter(is_idle) {
                state.holdings.remove(number);
            }
            state.holdings.forget_idle(owner);
        }
        drop(state);
        self.files.let_go(now, &file);
    }
}

/// Returns whether a lock is offered to an owner that waited for it. If it is not, the owner has
/// cancelled, or has repeated its request and may have unlocked since. A lock that is taken now
/// would never be freed.
fn is_offered(state: &ClientState, (host, file): (&Client, &File), lock: &HostLock<'_>) -> bool {
    let owner = state.holdings.find_owner(OwnerKind::Lock, lock.owner);
    owner.is_some_and(|owner| {
        let HostLock { range, kind, .. } = *lock;
        file.state().locks.is_offered(Offer { owner: lock_owner(host.id, owner), range, kind })
    })
}
