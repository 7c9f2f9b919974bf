//! LOCK, LOCKT, LOCKU and RELEASE_LOCKOWNER (RFC 8881, 18.10 to 18.12; RFC 7530, 16.37).

use std::sync::Arc;
use std::time::Duration;

use super::place::Place;
use super::place::lock_place;
use crate::client_state::{ClientState, LockState, Owner, OwnerKind, StateKind, lock_owner};
use crate::courtesy::Blocked;
use crate::{
    ByteRange, Caller, Client, ClientProtocol, Engine, Error, FileKey, LocalLock, Locals,
    LockRefusal, LockType, Offer, Result, Sender, Settings, Share, Stateid, Taken,
};

/// The arguments of LOCK.
#[derive(Debug, Clone, Copy)]
pub struct Lock<'a> {
    /// The file, which must be that of the stateid.
    pub file: FileKey,
    /// The bytes.
    pub range: ByteRange,
    /// Read or write.
    pub kind: LockType,
    /// True if the client had the lock before the server restarted.
    pub reclaim: bool,
    /// True if the client waits for the lock (`READW_LT`, `WRITEW_LT`). If it is refused, the owner
    /// joins the queue.
    pub wait: bool,
    /// The owner of the lock.
    pub locker: Locker<'a>,
}

/// The owner of a requested lock (`locker4`).
#[derive(Debug, Clone, Copy)]
pub enum Locker<'a> {
    /// A lock-owner without a lock stateid for this open.
    New {
        /// The open.
        open: Stateid,
        /// The lock-owner.
        owner: &'a [u8],
        /// The first seqid of the lock-owner, in minor version 0.
        seqid: u32,
    },
    /// A lock-owner with a lock stateid for this open.
    Known {
        /// Its lock stateid.
        lock: Stateid,
    },
}

impl Engine {
    /// LOCK.
    ///
    /// # Errors
    /// [`LockRefusal::Denied`]; [`Error::Openmode`], [`Error::Grace`], [`Error::NoGrace`],
    /// [`Error::ReclaimBad`], [`Error::ReclaimConflict`], [`Error::BadSeqid`], [`Error::Resource`];
    /// the errors of an invalid stateid.
    pub fn lock(&self, sender: Sender<'_>, args: &Lock<'_>) -> Result<Stateid, LockRefusal> {
        self.lock_counted(&sender, args).map(|(stateid, _)| stateid)
    }

    /// LOCK, with programs on the server: the bytes are locked in the file system first.
    ///
    /// # Errors
    /// The errors of [`Engine::lock`]; [`Taken`] if a program has locked the bytes.
    pub fn lock_beside(
        &self,
        locals: &dyn Locals,
        sender: Sender<'_>,
        args: &Lock<'_>,
    ) -> Result<Result<Stateid, LockRefusal>, Taken> {
        let mut locked = None;
        let Lock { file, range, kind, reclaim, .. } = *args;
        let wanted = LocalLock { range, kind, origin: sender.caller.origin, reclaim };
        let taken = locals.take(&file, &wanted, &mut || {
            let done = locked.insert(self.lock_counted(&sender, args));
            done.as_ref().ok().map(|(_, held)| *held)
        });
        locked.map(|locked| locked.map(|(stateid, _)| stateid)).ok_or(taken)
    }

    /// Locks; returns the stateid, and the number of ranges of the file that are locked now.
    fn lock_counted(
        &self,
        sender: &Sender<'_>,
        args: &Lock<'_>,
    ) -> Result<(Stateid, usize), LockRefusal> {
        let locked = self.unless_courteous(sender.now, || self.try_lock(sender, args));
        match locked {
            Err(LockRefusal::Denied { .. }) if args.reclaim => Err(Error::ReclaimConflict.into()),
            locked => locked,
        }
    }

    fn try_lock(&self, sender: &Sender<'_>, args: &Lock<'_>) -> Result<(Stateid, usize), Blocked> {
        let named = match &args.locker {
            Locker::New { open, .. } => open,
            Locker::Known { lock } => lock,
        };
        let found = self.find(sender, named)?;
        let client = &*found.client;
        let mut state = client.live()?;
        let place = lock_place(sender, &found, &mut state, args)?;
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
        let wish =
            Offer { owner: lock_owner(client.id, owner), range: args.range, kind: args.kind };
        let wait = args.wait.then(|| self.waits_until(sender.now, client));
        let mut offers = Vec::new();
        let locked = self.lock_in(file, sender.now, (client, wish, wait), &mut offers);
        let noted = match locked {
            Ok((held, more)) => {
                let place = Place { owner: Some(owner), ..place };
                let stateid = self.note_lock((sender, client), &mut state, place, args);
                if let Ok(name) = stateid.and_then(|lock| lock.name())
                    && let Some(lock) = state.holdings.number_of(client.id, name)
                {
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

    fn may_lock(
        &self,
        now: Duration,
        client: &Client,
        state: &ClientState,
        args: &Lock<'_>,
    ) -> Result<()> {
        if args.reclaim {
            return self.may_reclaim(now, (client, state.reclaim_complete), &args.file);
        }
        let waits = client.protocol == ClientProtocol::ExchangeId && !state.reclaim_complete;
        let is_in_grace = self.is_in_grace_at(args.file.export);
        if is_in_grace || waits { Err(Error::Grace) } else { Ok(()) }
    }

    /// Checks that the state of one more lock can be stored. A granted lock without a state could
    /// never be freed.
    fn has_room(&self, state: &ClientState, place: Place) -> Result<()> {
        let most = self.settings.limits.states_per_client;
        let full = place.lock.is_none() && state.holdings.len() >= most;
        if full || !state.holdings.has_room() { Err(Error::Resource) } else { Ok(()) }
    }

    fn add_locker(
        &self,
        sender: &Sender<'_>,
        state: &mut ClientState,
        args: &Lock<'_>,
    ) -> Result<u32> {
        let Locker::New { owner, seqid, .. } = args.locker else { return Err(Error::BadStateid) };
        let now = sender.now;
        let named = (owner, sender.caller.principal);
        let owner = if sender.is_unsequenced() {
            Owner::new(now, OwnerKind::Lock, named, seqid)
        } else {
            // An owner that has not repeated its request for this long has left the queue.
            let Settings { lock_wait, lock_offer, .. } = self.settings;
            state.holdings.reap_owners(now.saturating_sub(lock_wait + lock_offer));
            Owner::sequenced(now, OwnerKind::Lock, named)
        };
        state.holdings.add_owner(&self.settings.limits, owner)
    }

    /// Notes a granted lock; returns its new stateid.
    fn note_lock(
        &self,
        (sender, client): (&Sender<'_>, &Arc<Client>),
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
            Some(number) => state.holdings.change(client.id, number),
            None => {
                let shared = state.borrows(client, &sender.caller, owner);
                let what =
                    StateKind::Lock(LockState { owner, open: place.open, ranges: 0, shared });
                let file = Arc::clone(&state.at(place.named)?.file);
                let at = (sender.now, &file);
                let number = state.holdings.insert(&self.settings.limits, at, what)?;
                Ok(Stateid::new(client.id, number, 1))
            }
        }
    }

    /// LOCKT. Any user of the client may test, because a user that has opened a file under a
    /// delegation has no state at the server. Only a caller that may send RENEW renews the lease.
    ///
    /// # Errors
    /// [`LockRefusal::Denied`]; [`Error::Grace`].
    pub fn test_lock(
        &self,
        (now, caller): (Duration, Caller),
        client: &Arc<Client>,
        owner: &[u8],
        wanted: (&FileKey, ByteRange, LockType),
    ) -> Result<(), LockRefusal> {
        let tested = self.find_conflict(now, client, owner, wanted);
        let is_answered = !matches!(tested, Err(LockRefusal::Error(_)));
        if is_answered && client.is_renewed_by(&*client.live()?, &caller) {
            client.renew_unsequenced(now);
        }
        tested
    }

    /// Checks whether an owner of a client, or of a host of NLM, would get a lock.
    ///
    /// # Errors
    /// The errors of [`Engine::test_lock`].
    pub(crate) fn find_conflict(
        &self,
        now: Duration,
        client: &Arc<Client>,
        owner: &[u8],
        (key, range, kind): (&FileKey, ByteRange, LockType),
    ) -> Result<(), LockRefusal> {
        if self.is_in_grace_at(key.export) {
            return Err(Error::Grace.into());
        }
        let Some(file) = self.files.get(key) else { return Ok(()) };
        self.unless_courteous(now, || {
            let owner = client.live()?.holdings.find_owner(OwnerKind::Lock, owner);
            // Zero is no owner's number.
            let owner = lock_owner(client.id, owner.unwrap_or(0));
            let conflict = file.state().locks.test(owner, range, kind);
            conflict.map_or(Ok(()), |conflict| Err(Blocked::By(conflict)))
        })
    }
}

/// Forgets a lock-owner that was created for a lock that it did not get and does not wait for.
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

/// Checks that the open allows the lock (RFC 8881, 18.10.4).
fn check_mode(state: &ClientState, open: u32, kind: LockType) -> Result<()> {
    let needed = if kind == LockType::Write { Share::WRITE } else { Share::READ };
    let granted = state.holdings.opening(open)?.share.access;
    if granted & needed != 0 { Ok(()) } else { Err(Error::Openmode) }
}
