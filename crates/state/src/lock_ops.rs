//! LOCK, LOCKT, LOCKU and RELEASE_LOCKOWNER (RFC 8881, 18.10 to 18.12; RFC 7530, 16.37).

use std::sync::Arc;
use std::time::Duration;

use crate::client::ClientState;
use crate::client_state::{Locking, What, client_of_lock_owner, lock_owner};
use crate::effect::Effect;
use crate::file::{File, FileState, Holder, Share};
use crate::lock_place::{Place, other_lock, place};
use crate::nlm::share_of;
use crate::open::EVICTIONS_MAX;
use crate::owner::{Owner, OwnerKind};
use crate::{
    ByteRange, Caller, Client, ClientId, Conflict, Desk, Engine, Error, FileKey, Locals, LockType,
    Offer, Result, Sender, Settings, Stateid, Taken,
};

/// What a LOCK asks for.
#[derive(Debug, Clone, Copy)]
pub struct Lock<'a> {
    /// The file, which must be the stateid's.
    pub file: FileKey,
    /// Which bytes.
    pub range: ByteRange,
    /// Shared or alone.
    pub kind: LockType,
    /// Whether it was held before the restart.
    pub reclaim: bool,
    /// Whether the client waits (`READW_LT`, `WRITEW_LT`): it keeps a place then.
    pub wait: bool,
    /// Whose it is to be.
    pub locker: Locker<'a>,
}

/// Whose a lock is to be (`locker4`).
#[derive(Debug, Clone, Copy)]
pub enum Locker<'a> {
    /// A lock-owner's that has no lock in this file under this open.
    New {
        /// The open.
        open: Stateid,
        /// The lock-owner.
        owner: &'a [u8],
        /// The first number of the lock-owner, in minor version 0.
        seqid: u32,
    },
    /// One that has.
    Known {
        /// Its lock stateid.
        lock: Stateid,
    },
}

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

pub(crate) type Wakes = Vec<(FileKey, Offer)>;

impl Engine {
    /// LOCK.
    ///
    /// # Errors
    /// [`LockRefusal::Denied`]; [`Error::Openmode`], [`Error::Grace`], [`Error::NoGrace`],
    /// [`Error::ReclaimBad`], [`Error::ReclaimConflict`], [`Error::BadSeqid`],
    /// [`Error::Resource`]; as a stateid is refused.
    pub fn lock(&self, sender: Sender<'_>, args: &Lock<'_>) -> Result<Stateid, LockRefusal> {
        self.lock_counted(sender, args).map(|(stateid, _)| stateid)
    }

    /// LOCK beside programs on the server, from which the bytes are taken first.
    ///
    /// # Errors
    /// As [`Engine::lock`]; [`Taken`] if a program has them.
    pub fn lock_beside(
        &self,
        locals: &dyn Locals,
        sender: Sender<'_>,
        args: &Lock<'_>,
    ) -> Result<Result<Stateid, LockRefusal>, Taken> {
        let mut locked = None;
        let taken = locals.take(&args.file, (args.range, args.kind), &mut || {
            let done = locked.insert(self.lock_counted(sender, args));
            done.as_ref().ok().map(|(_, held)| *held)
        });
        locked.map(|locked| locked.map(|(stateid, _)| stateid)).ok_or(taken)
    }

    /// Locks; tells the stateid, and how many ranges of the file are held now.
    fn lock_counted(
        &self,
        sender: Sender<'_>,
        args: &Lock<'_>,
    ) -> Result<(Stateid, usize), LockRefusal> {
        let locked = self.unless_courteous(sender.now, || self.try_lock(sender, args));
        match locked {
            Err(LockRefusal::Denied { .. }) if args.reclaim => Err(Error::ReclaimConflict.into()),
            locked => locked,
        }
    }

    fn try_lock(&self, sender: Sender<'_>, args: &Lock<'_>) -> Result<(Stateid, usize), Blocked> {
        let named = match &args.locker {
            Locker::New { open, .. } => open,
            Locker::Known { lock } => lock,
        };
        let found = self.find(sender, named)?;
        let client = &*found.client;
        let mut state = client.live()?;
        let place = place(sender, &found, &mut state, args)?;
        self.may_lock(sender.now, client, &state, args)?;
        check_mode(&state, place.open, args.kind)?;
        self.has_room(&state, place)?;
        let owner = match place.owner {
            Some(owner) => owner,
            None => self.add_locker(sender, &mut state, args)?,
        };
        if args.wait {
            state.holdings.comes_by(owner, args.file.export);
        }
        let file = &state.at(place.named)?.file;
        let wish = Offer { owner: lock_owner(client, owner), range: args.range, kind: args.kind };
        let wait = args.wait.then(|| self.waits_until(sender.now, client));
        let mut offers = Vec::new();
        let locked = self.lock_in(file, sender.now, (client, wish, wait), &mut offers);
        let noted = match locked {
            Ok((held, more)) => {
                let place = Place { owner: Some(owner), ..place };
                let stateid = self.note_lock((sender, client), &mut state, place, args);
                if let Ok((_, lock)) = stateid.and_then(|lock| lock.place()) {
                    state.holdings.count_ranges(lock, more);
                }
                stateid.map(|stateid| (stateid, held)).map_err(Blocked::from)
            }
            Err(blocked) => {
                let waits = args.wait && matches!(blocked, Blocked::By(_));
                forget_unused(sender.now, &mut state, (owner, place), waits);
                Err(blocked)
            }
        };
        drop(state);
        self.announce(offers.into_iter().map(|offer| (args.file, offer)).collect());
        noted
    }

    /// Locks bytes of a file; tells how many ranges are held then, and how many more than before.
    /// Whether they can be had or not, others may be offered theirs.
    pub(crate) fn lock_in(
        &self,
        file: &Arc<File>,
        now: Duration,
        (client, wish, wait): (&Client, Offer, Option<Duration>),
        offers: &mut Vec<Offer>,
    ) -> Result<(usize, isize), Blocked> {
        let mut on_file = file.state();
        // To a host of NLM, which opens nothing, it may have been delegated a moment ago.
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
            self.tally.lock_waits.add(usize::from(locks.len() > known));
            self.watch(file);
        }
        Err(conflict.into())
    }

    fn may_lock(
        &self,
        now: Duration,
        client: &Client,
        state: &ClientState,
        args: &Lock<'_>,
    ) -> Result<()> {
        if args.reclaim {
            if state.reclaim_complete {
                return Err(Error::NoGrace);
            }
            return self.grace.may_reclaim(now, client, &args.file);
        }
        let waits = client.desk == Desk::ExchangeId && !state.reclaim_complete;
        if self.is_in_grace() || waits { Err(Error::Grace) } else { Ok(()) }
    }

    /// Whether one lock more can be remembered: one that is held and has no state would never be
    /// free again.
    fn has_room(&self, state: &ClientState, place: Place) -> Result<()> {
        let most = self.settings.limits.states_per_client;
        let full = place.lock.is_none() && state.holdings.len() >= most;
        if full || !state.holdings.has_room() { Err(Error::Resource) } else { Ok(()) }
    }

    fn add_locker(
        &self,
        sender: Sender<'_>,
        state: &mut ClientState,
        args: &Lock<'_>,
    ) -> Result<u32> {
        let Locker::New { owner, seqid, .. } = args.locker else { return Err(Error::BadStateid) };
        let now = sender.now;
        let named = (owner, sender.caller.principal);
        let owner = if sender.is_unsequenced() {
            Owner::new(now, OwnerKind::Lock, named, seqid)
        } else {
            // Who waits no more than this has no place any more.
            let Settings { lock_wait, lock_offer, .. } = self.settings;
            state.holdings.reap_owners(now.saturating_sub(lock_wait + lock_offer));
            Owner::sequenced(now, OwnerKind::Lock, named)
        };
        state.holdings.add_owner(&self.settings.limits, owner)
    }

    /// The lock is held: its stateid is new, or another.
    fn note_lock(
        &self,
        (sender, client): (Sender<'_>, &Arc<Client>),
        state: &mut ClientState,
        place: Place,
        args: &Lock<'_>,
    ) -> Result<Stateid> {
        let owner = place.owner.ok_or(Error::BadStateid)?;
        if let Locker::New { seqid, .. } = args.locker
            && let Some(owner) = state.holdings.owner_mut(owner)
        {
            owner.advance(seqid);
        }
        match place.lock {
            Some(number) => {
                let lock = state.holdings.get_mut(number).ok_or(Error::BadStateid)?;
                Ok(lock.change(client, number))
            }
            None => {
                let shared = state.borrows(client, sender.caller, owner);
                let what = What::Lock(Locking { owner, open: place.open, ranges: 0, shared });
                let file = Arc::clone(&state.at(place.named)?.file);
                let at = (sender.now, &file);
                let number = state.holdings.insert(&self.settings.limits, at, what)?;
                Ok(Stateid::new(client.id, number, 1))
            }
        }
    }

    /// LOCKT.
    ///
    /// # Errors
    /// [`LockRefusal::Denied`]; [`Error::Grace`].
    pub fn test_lock(
        &self,
        now: Duration,
        client: &Arc<Client>,
        owner: &[u8],
        (key, range, kind): (&FileKey, ByteRange, LockType),
    ) -> Result<(), LockRefusal> {
        if self.is_in_grace() {
            return Err(Error::Grace.into());
        }
        client.renew_unsequenced(now);
        let Some(file) = self.files.get(key) else { return Ok(()) };
        self.unless_courteous(now, || {
            let owner = client.live()?.holdings.find_owner(OwnerKind::Lock, owner);
            // No owner has the number zero.
            let owner = lock_owner(client, owner.unwrap_or(0));
            let conflict = file.state().locks.test(owner, range, kind);
            conflict.map_or(Ok(()), |conflict| Err(Blocked::By(conflict)))
        })
    }

    /// LOCKU.
    ///
    /// # Errors
    /// As a stateid is refused; [`Error::Resource`]: it would make one range too many.
    pub fn unlock(
        &self,
        sender: Sender<'_>,
        stateid: &Stateid,
        (key, range): (&FileKey, ByteRange),
    ) -> Result<Stateid> {
        let (stateid, _) = self.free(sender, stateid, (key, range))?;
        self.tell_unlocked(*key, range);
        Ok(stateid)
    }

    /// LOCKU beside programs on the server, which may have at once what nobody holds any more.
    ///
    /// # Errors
    /// As [`Engine::unlock`].
    pub fn unlock_beside(
        &self,
        locals: &dyn Locals,
        (sender, stateid): (Sender<'_>, &Stateid),
        (key, range): (&FileKey, ByteRange),
    ) -> Result<Stateid> {
        let mut freed = Err(Error::BadStateid);
        locals.give(key, range, &mut || {
            freed = self.free(sender, stateid, (key, range));
            freed.as_ref().ok().map(|(_, left)| *left)
        });
        freed.map(|(stateid, _)| stateid)
    }

    /// Frees bytes; tells the stateid, and how many ranges of the file are held now.
    fn free(
        &self,
        sender: Sender<'_>,
        stateid: &Stateid,
        (key, range): (&FileKey, ByteRange),
    ) -> Result<(Stateid, usize)> {
        let found = self.find(sender, stateid)?;
        let (client, number) = (&*found.client, found.number);
        let mut state = client.live()?;
        let has_room = state.holdings.has_room();
        let lock = found.current(&mut state, (sender, key), stateid)?;
        let What::Lock(locking) = &lock.what else { return Err(Error::BadStateid) };
        let owner = lock_owner(client, locking.owner);
        let mut offers = Vec::new();
        let mut on_file = lock.file.state();
        self.may_split(&on_file, (owner, range), has_room)?;
        let (before, _) = on_file.locks.counts();
        on_file.locks.expire(sender.now, &mut offers);
        on_file.locks.unlock(sender.now, owner, range, &mut offers);
        let (left, _) = on_file.locks.counts();
        drop(on_file);
        let woken = (!offers.is_empty()).then(|| Arc::clone(&lock.file));
        let stateid = lock.change(client, number);
        state.holdings.count_ranges(number, left.cast_signed() - before.cast_signed());
        drop(state);
        if let Some(file) = woken {
            self.wake_waiters(&file, offers);
        }
        Ok((stateid, left))
    }

    /// Whether an owner may free bytes: to free some in the middle of a lock makes two of it, and
    /// who frees every other byte could have as many as there are bytes.
    ///
    /// # Errors
    /// [`Error::Resource`].
    pub(crate) fn may_split(
        &self,
        on_file: &FileState,
        (owner, range): (u64, ByteRange),
        has_room: bool,
    ) -> Result<()> {
        let full = !has_room || on_file.locks.len() >= self.settings.limits.locks_per_file;
        if full && on_file.locks.splits(owner, range) { Err(Error::Resource) } else { Ok(()) }
    }

    /// RELEASE_LOCKOWNER (RFC 7530, 16.37): an owner that holds no lock is forgotten.
    ///
    /// # Errors
    /// [`Error::WrongCred`]: it is another principal's; [`Error::LocksHeld`].
    pub fn release_lockowner(
        &self,
        (now, caller): (Duration, Caller),
        client: &Client,
        owner: &[u8],
    ) -> Result<()> {
        let mut state = client.live()?;
        let Some(owner) = state.holdings.find_owner(OwnerKind::Lock, owner) else { return Ok(()) };
        if state.borrows(client, caller, owner) {
            return Err(Error::WrongCred);
        }
        let number = lock_owner(client, owner);
        let of_owner = |what: &What| matches!(what, What::Lock(locking) if locking.owner == owner);
        let locks = state.holdings.states().filter(|(_, state)| of_owner(&state.what));
        let locks: Vec<(u32, Arc<File>)> =
            locks.map(|(number, state)| (number, Arc::clone(&state.file))).collect();
        let holds = |file: &Arc<File>| file.state().locks.held_by(number).next().is_some();
        if locks.iter().any(|(_, file)| holds(file)) {
            return Err(Error::LocksHeld);
        }
        let mut wakes = Vec::new();
        for (number, _) in locks {
            if let Some(lock) = state.holdings.remove(number) {
                let holder = Holder { client: client.id, state: number };
                self.release_state(now, holder, &lock, &mut wakes);
            }
        }
        state.holdings.remove_owner(owner);
        drop(state);
        self.announce(wakes);
        Ok(())
    }

    /// Frees all locks under an open.
    pub(crate) fn free_locks(
        &self,
        now: Duration,
        client: &Client,
        state: &mut ClientState,
        open: u32,
        wakes: &mut Wakes,
    ) {
        for number in state.holdings.locks_under(open) {
            let Some(lock) = state.holdings.remove(number) else { continue };
            let What::Lock(Locking { owner, ranges, .. }) = lock.what else { continue };
            match other_lock(state, client, (&lock.file, owner)) {
                // What a lock-owner has of a file is one set of bytes, under however many opens.
                Some(other) => state.holdings.count_ranges(other, ranges as isize),
                None => {
                    let holder = Holder { client: client.id, state: number };
                    self.release_state(now, holder, &lock, wakes);
                }
            }
            if client.desk == Desk::ExchangeId {
                state.holdings.forget_idle(owner);
            }
        }
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

    /// How long a waiter that begins to wait now keeps its place.
    pub(crate) fn waits_until(&self, now: Duration, client: &Client) -> Duration {
        let Settings { lock_wait, lease, .. } = self.settings;
        now.saturating_add(match client.desk {
            Desk::Setclientid => lock_wait.min(lease),
            Desk::ExchangeId | Desk::Nlm => lock_wait,
        })
    }

    /// Ends waits and offers of a file whose time is over.
    pub(crate) fn expire_waits(&self, now: Duration, file: &Arc<File>) {
        let mut offers = Vec::new();
        file.state().locks.expire(now, &mut offers);
        self.wake_waiters(file, offers);
    }

    pub(crate) fn wake_waiters(&self, file: &Arc<File>, offers: Vec<Offer>) {
        if !offers.is_empty() {
            self.watch(file);
        }
        self.announce(offers.into_iter().map(|offer| (file.key, offer)).collect());
    }

    /// Tells waiters that their locks can be had. No lock may be held.
    pub(crate) fn announce(&self, wakes: Wakes) {
        for (file, offer) in wakes {
            let id = self.clients.id(client_of_lock_owner(offer.owner));
            let Some(client) = self.clients.get(id) else { continue };
            if client.desk == Desk::Setclientid {
                continue;
            }
            let state = client.state();
            let owner = state.holdings.owner(offer.owner as u32);
            let owner = owner.map(|owner| (owner.name.clone(), owner.export));
            drop(state);
            if let Some((owner, export)) = owner {
                let (file, Offer { range, kind, .. }) = (FileKey { export, ..file }, offer);
                self.outbox.push(Effect::NotifyLock { client, owner, file, range, kind });
            }
        }
    }
}

/// Forgets a lock-owner that was made for a lock it did not get and does not wait for.
fn forget_unused(
    now: Duration,
    state: &mut ClientState,
    (owner, place): (u32, Place),
    waits: bool,
) {
    if waits {
        state.holdings.owner_mut(owner).into_iter().for_each(|owner| owner.seen(now));
    } else if place.owner.is_none() {
        state.holdings.forget_idle(owner);
    }
}

/// A lock needs a file that is open for it (RFC 8881, 18.10.4).
fn check_mode(state: &ClientState, open: u32, kind: LockType) -> Result<()> {
    let needed = if kind == LockType::Write { Share::WRITE } else { Share::READ };
    let granted = state.holdings.opening(open)?.share.access;
    if granted & needed != 0 { Ok(()) } else { Err(Error::Openmode) }
}
