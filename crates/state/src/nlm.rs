//! The lock manager of NFSv3: hosts without leases, whose locks and shares stand among those of
//! NFSv4 (RFC 1813, appendix II).
//!
//! A host is a client without a lease: it says when it has started anew, and so does the server.
//! One that is silent is asked whether it is still there (`hosts.rs`).

use std::sync::Arc;
use std::time::Duration;

use crate::client::{Birth, ClientState, Names};
use crate::client_state::{Locking, Opening, What, lock_owner};
use crate::file::{File, FileState, Holder, Share};
use crate::lock_ops::Blocked;
use crate::open::{Obstacle, forget_opener};
use crate::owner::{Owner, OwnerKind};
use crate::{
    ByteRange, Caller, Client, ClientOwner, Desk, Engine, Error, FileKey, Limits, LockRefusal,
    LockType, Offer, Origin, Principal, Result, Verifier,
};

/// No open: locks of hosts are under none.
const NO_OPEN: u32 = 0;

/// A lock of a host.
#[derive(Debug, Clone, Copy)]
pub struct HostLock<'a> {
    /// Which of the host's owners.
    pub owner: &'a [u8],
    /// The file.
    pub file: FileKey,
    /// Which bytes.
    pub range: ByteRange,
    /// Shared or alone.
    pub kind: LockType,
}

/// When a lock of a host may be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claiming {
    /// Now or not at all.
    Now,
    /// Later, if not now.
    Wait,
    /// Now: it waited and was offered it, and is still to be told that it has it
    /// ([`Engine::grant_known`], [`Engine::withdraw_grant`]).
    Offered,
    /// It was held before the restart.
    Reclaim,
}

impl Engine {
    /// The host of this name, known or not. A new one is recorded: the answer must wait for
    /// [`Engine::unstored`].
    ///
    /// # Errors
    /// [`Error::Delay`] where there are too many clients, or too many of its origin.
    pub fn host(&self, now: Duration, name: &[u8], origin: Origin) -> Result<Arc<Client>> {
        let mut names = self.clients.names();
        if let Some(host) = named(&names, name) {
            host.renew(now);
            return Ok(host);
        }
        let owner = ClientOwner { verifier: Verifier::default(), id: name.into() };
        let caller = Caller { principal: Principal::default(), origin };
        let birth = Birth { desk: Desk::Nlm, owner, caller, announced: None };
        let host = self.introduce(now, &mut names, birth)?;
        self.confirm(&mut names, &host);
        Ok(host)
    }

    /// The host of this name, if it is known: only such a one can have anything.
    #[must_use]
    pub fn known_host(&self, now: Duration, name: &[u8]) -> Option<Arc<Client>> {
        named(&self.clients.names(), name).inspect(|host| host.renew(now))
    }

    /// A host wants to be forgotten (FREE_ALL): all it had is free.
    pub fn forget_host(&self, now: Duration, name: &[u8]) {
        if let Some(host) = self.known_host(now, name) {
            self.evict(now, &host);
        }
    }

    /// SM_NOTIFY: a host has started anew for the `state`-th time, and what it held is free; but
    /// not what was asked for since, for it is told late, or again.
    pub fn host_began_anew(&self, now: Duration, name: &[u8], state: i32) {
        match self.known_host(now, name) {
            Some(host) if host.monitor_state() == state => self.release_before(now, &host, state),
            Some(host) => self.evict(now, &host),
            None => {}
        }
    }

    /// Frees what was not asked for since the host started anew for the `state`-th time.
    fn release_before(&self, now: Duration, host: &Client, state: i32) {
        let mut held = host.state();
        let mut wakes = Vec::new();
        for number in held.holdings.asked_before(state) {
            let Some(stale) = held.holdings.remove(number) else { continue };
            stale.owner().into_iter().for_each(|owner| held.holdings.forget_idle(owner));
            self.release_state(now, Holder { client: host.id, state: number }, &stale, &mut wakes);
        }
        drop(held);
        self.announce(wakes);
    }

    /// NLM_LOCK. Tells how many ranges of the file are held now.
    ///
    /// # Errors
    /// [`LockRefusal::Denied`]: with [`Claiming::Wait`] the owner keeps a place and is told by a
    /// notice; [`Error::Grace`], [`Error::NoGrace`], [`Error::ReclaimBad`]; [`Error::Delay`] while
    /// a delegation is recalled; [`Error::Resource`], with [`Claiming::Offered`] also if it is not
    /// offered any more.
    pub fn lock_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        lock: &HostLock<'_>,
        claiming: Claiming,
    ) -> Result<usize, LockRefusal> {
        self.may_lock_host(now, host, lock, claiming)?;
        self.break_delegations(now, Some(host), &lock.file, share_of(lock.kind))?;
        let locked = self.unless_courteous(now, || self.try_lock_host(now, host, lock, claiming));
        if matches!(locked, Err(LockRefusal::Error(_))) {
            self.tidy_host(now, host, lock);
        }
        locked
    }

    fn may_lock_host(
        &self,
        now: Duration,
        host: &Client,
        lock: &HostLock<'_>,
        claiming: Claiming,
    ) -> Result<()> {
        match claiming {
            Claiming::Reclaim => self.grace.may_reclaim(now, host, &lock.file),
            _ if self.is_in_grace() => Err(Error::Grace),
            _ => Ok(()),
        }
    }

    fn try_lock_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        lock: &HostLock<'_>,
        claiming: Claiming,
    ) -> Result<usize, Blocked> {
        let limits = &self.settings.limits;
        let file = self.file(&lock.file)?;
        let mut state = host.live()?;
        let may = claiming != Claiming::Offered || is_offered(&state, (host, &file), lock);
        if !may || !state.holdings.has_room() {
            return Err(Error::Resource.into());
        }
        let owner = host_owner(&mut state, limits, now, (OwnerKind::Lock, lock.owner))?;
        let number = match state.holdings.find(owner, &file) {
            Some(number) => number,
            None => {
                // What waits is the host's, too: it goes when the host does.
                let what = What::Lock(Locking { owner, open: NO_OPEN, ranges: 0, shared: false });
                state.holdings.insert(limits, (now, &file), what)?
            }
        };
        state.holdings.asked(number, host);
        let wish = Offer { owner: lock_owner(host, owner), range: lock.range, kind: lock.kind };
        let wait = (claiming == Claiming::Wait).then(|| self.waits_until(now, host));
        if wait.is_some() {
            state.holdings.comes_by(owner, lock.file.export);
        }
        let before = (claiming == Claiming::Offered)
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
    /// As [`Engine::test_lock`].
    pub fn test_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        lock: &HostLock<'_>,
    ) -> Result<(), LockRefusal> {
        self.test_lock(now, host, lock.owner, (&lock.file, lock.range, lock.kind))
    }

    /// NLM_UNLOCK: what the owner holds of the range is free.
    ///
    /// # Errors
    /// [`Error::Resource`]: it would make one range too many.
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

    /// NLM_CANCEL: the owner waits no more; nor has it the lock, if it could not know yet.
    pub fn cancel_host(&self, now: Duration, host: &Arc<Client>, lock: &HostLock<'_>) {
        self.withdraw_grant(now, host, lock);
        // Who waits no more has nothing more by that: it cannot be refused.
        let _ = self.change_host(host, lock, |(owner, _), on_file, offers| {
            let waiter = Offer { owner, range: lock.range, kind: lock.kind };
            on_file.locks.cancel(now, waiter, offers);
            Ok(())
        });
        self.tidy_host(now, host, lock);
    }

    /// Does something to what an owner has of a file; it is told which owner of all clients' that
    /// is, and whether there is room for more.
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
        let whose = (lock_owner(host, owner), state.holdings.has_room());
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

    /// Forgets an owner that has nothing of a file and waits for nothing, and the owner itself
    /// where that was the last.
    pub(crate) fn tidy_host(&self, now: Duration, host: &Arc<Client>, lock: &HostLock<'_>) {
        let mut state = host.state();
        let Some(file) = self.files.get(&lock.file) else { return };
        if let Some(owner) = state.holdings.find_owner(OwnerKind::Lock, lock.owner) {
            let number = state.holdings.find(owner, &file);
            let is_idle = |_: &u32| !file.state().locks.knows(lock_owner(host, owner));
            if let Some(number) = number.filter(is_idle) {
                state.holdings.remove(number);
            }
            state.holdings.forget_idle(owner);
        }
        drop(state);
        self.let_go(now, &file);
    }

    /// NLM_SHARE: a share reservation of DOS.
    ///
    /// # Errors
    /// [`Error::ShareDenied`]; as [`Engine::lock_host`].
    pub fn share_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        (name, key): (&[u8], FileKey),
        share: Share,
        claiming: Claiming,
    ) -> Result<()> {
        let kind = LockType::Read;
        let range = ByteRange::ALL;
        self.may_lock_host(now, host, &HostLock { owner: name, file: key, range, kind }, claiming)?;
        self.break_delegations(now, Some(host), &key, share)?;
        let file = self.file(&key)?;
        let shared = self.unless_expired(now, || self.try_share(now, host, (name, &file), share));
        if shared.is_err() {
            forget_opener(host, name);
        }
        self.let_go(now, &file);
        shared
    }

    fn try_share(
        &self,
        now: Duration,
        host: &Arc<Client>,
        (name, file): (&[u8], &Arc<File>),
        share: Share,
    ) -> Result<(), Obstacle> {
        let limits = &self.settings.limits;
        let mut state = host.live()?;
        let owner = host_owner(&mut state, limits, now, (OwnerKind::Open, name))?;
        let known = state.holdings.find(owner, file);
        let mut on_file = file.state();
        let holder = known.map(|state| Holder { client: host.id, state });
        if let Some(other) = on_file.shares.conflict(holder, share) {
            return Err(Obstacle::Share(other));
        }
        let number = match known {
            Some(number) => {
                state.holdings.share(number, share);
                number
            }
            None => {
                let what = What::Open(Opening {
                    owner,
                    share,
                    user: None,
                    opened: 0,
                    closed: false,
                    shared: false,
                });
                state.holdings.insert(limits, (now, file), what)?
            }
        };
        state.holdings.asked(number, host);
        self.set_share(&mut on_file, Holder { client: host.id, state: number }, Some(share));
        Ok(())
    }

    /// NLM_UNSHARE.
    pub fn unshare_host(&self, now: Duration, host: &Arc<Client>, (name, key): (&[u8], FileKey)) {
        let mut state = host.state();
        let Some(owner) = state.holdings.find_owner(OwnerKind::Open, name) else { return };
        let Some(file) = self.files.get(&key) else { return };
        let Some(number) = state.holdings.find(owner, &file) else { return };
        let Some(open) = state.holdings.remove(number) else { return };
        state.holdings.forget_idle(owner);
        drop(state);
        let holder = Holder { client: host.id, state: number };
        self.release_state(now, holder, &open, &mut Vec::new());
    }
}

/// An owner of a host, known or not.
fn host_owner(
    state: &mut ClientState,
    limits: &Limits,
    now: Duration,
    (kind, name): (OwnerKind, &[u8]),
) -> Result<u32> {
    match state.holdings.find_owner(kind, name) {
        Some(number) => Ok(number),
        None => {
            let owner = Owner::sequenced(now, kind, (name, Principal::default()));
            state.holdings.add_owner(limits, owner)
        }
    }
}

/// Whether a lock is kept for an owner that waited for it. Else it has cancelled, or has asked
/// again and may have let go since: nobody would free what it is given now, unless it says so.
fn is_offered(state: &ClientState, (host, file): (&Client, &File), lock: &HostLock<'_>) -> bool {
    let owner = state.holdings.find_owner(OwnerKind::Lock, lock.owner);
    owner.is_some_and(|owner| {
        let HostLock { range, kind, .. } = *lock;
        file.state().locks.is_offered(Offer { owner: lock_owner(host, owner), range, kind })
    })
}

/// The host of a name.
pub(crate) fn named(names: &Names, name: &[u8]) -> Option<Arc<Client>> {
    names.confirmed(Desk::Nlm, name).cloned()
}

pub(crate) const fn share_of(kind: LockType) -> Share {
    Share::access(match kind {
        LockType::Read => Share::READ,
        LockType::Write => Share::WRITE,
    })
}
