//! All that one client holds: its owners, and its states by number.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::file::{File, Holder, Share};
use crate::id_hasher::Numbers;
use crate::limits::{Limits, RANGE_BYTES, REAPED_MIN, STATE_BYTES};
use crate::lock_ops::Wakes;
use crate::memory_pool::{Allotment, Pool, PoolShare};
use crate::offload::Offloads;
use crate::owner::{Owner, OwnerKind};
use crate::{Client, DelegationKind, Engine, Error, Principal, Result, Stateid};

/// What one client holds.
pub(crate) struct Holdings {
    next: u32,
    states: HashMap<u32, State, Numbers>,
    owners: HashMap<u32, Owner, Numbers>,
    open_owners: HashMap<Box<[u8]>, u32>,
    lock_owners: HashMap<Box<[u8]>, u32>,
    /// The state of an owner for what it is of: see [`What::subject`].
    by_subject: HashMap<(u32, usize), u32, Numbers>,
    /// The lock states under an open that has any; those of hosts are under none.
    under: HashMap<u32, Vec<u32>, Numbers>,
    /// At how many owners those are looked for that have nothing any more.
    reap_at: usize,
    counts: Counts,
    /// Copies that are under way or have ended: no states, for nobody would miss them.
    pub(crate) offloads: Offloads,
    /// The memory that it takes.
    memory: Allotment,
}

/// How many states of each kind a client has; opens that are only kept for a retry do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Opens.
    pub opens: usize,
    /// Lock states: one for each lock-owner and file.
    pub locks: usize,
    /// Delegations.
    pub delegations: usize,
    /// Delegations that were taken back by force and not freed by the client yet.
    pub revoked: usize,
}

impl Counts {
    const fn of(&mut self, what: &What) -> Option<&mut usize> {
        match what {
            What::Open(opening) if opening.closed => None,
            What::Open(_) => Some(&mut self.opens),
            What::Lock(_) => Some(&mut self.locks),
            What::Delegation(_) => Some(&mut self.delegations),
            What::Revoked => Some(&mut self.revoked),
        }
    }

    fn add(&mut self, what: &What) {
        if let Some(count) = self.of(what) {
            *count += 1;
        }
    }

    fn take(&mut self, what: &What) {
        if let Some(count) = self.of(what) {
            *count -= 1;
        }
    }
}

/// A state: what a stateid stands for.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) file: Arc<File>,
    /// How often it was changed, as its stateid says. A host of NLM has none: how often that had
    /// started anew when it asked last, as it said.
    pub(crate) seqid: u32,
    /// When it began, in seconds.
    since_seconds: u32,
    pub(crate) what: What,
}

/// Which kind of state.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Open(Opening),
    Lock(Locking),
    Delegation(Delegating),
    /// A delegation that was taken back by force; it stays until the client frees it.
    Revoked,
}

/// An open of an owner.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) owner: u32,
    pub(crate) share: Share,
    /// Who opened it, each time, and was judged.
    pub(crate) user: Option<Arc<Cred<Disk>>>,
    /// The shares it was opened with, one bit each: what it may be downgraded to.
    pub(crate) opened: u16,
    /// Closed, and kept for a retry of its CLOSE (minor version 0).
    pub(crate) closed: bool,
    /// Opened under the name of another principal's owner: clients may have one owner for all their
    /// users (FreeBSD, `oneopenown`). Then it is the client's, and all of them may close it.
    pub(crate) shared: bool,
}

/// A delegation, and for whom the client asked the server when it got it.
#[derive(Debug, Clone)]
pub(crate) struct Delegating {
    pub(crate) kind: DelegationKind,
    /// Who opened the file, and was judged ...
    pub(crate) user: Option<Arc<Cred<Disk>>>,
    /// ... for this.
    pub(crate) access: u32,
}

/// The locks of a lock-owner under an open.
#[derive(Debug, Clone)]
pub(crate) struct Locking {
    pub(crate) owner: u32,
    pub(crate) open: u32,
    /// How many ranges it holds.
    pub(crate) ranges: u32,
    /// Locked under the name of another principal's owner.
    pub(crate) shared: bool,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({:?})", self.key)
    }
}

impl Holdings {
    /// Nothing yet; what comes takes memory of this pool, and of what the clients that share it may
    /// have together.
    pub(crate) fn new(pool: &Arc<Pool>, share: Arc<PoolShare>) -> Self {
        Self::in_memory(Allotment::of(pool, share))
    }

    /// Takes all out.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self::in_memory(self.memory.anew());
        std::mem::replace(self, empty)
    }

    fn in_memory(memory: Allotment) -> Self {
        Self {
            next: 0,
            states: HashMap::default(),
            owners: HashMap::default(),
            open_owners: HashMap::new(),
            lock_owners: HashMap::new(),
            by_subject: HashMap::default(),
            under: HashMap::default(),
            reap_at: 0,
            counts: Counts::default(),
            offloads: Offloads::default(),
            memory,
        }
    }

    /// Whether the client has nothing that anybody would miss.
    pub(crate) fn is_empty(&self) -> bool {
        self.states.values().all(|state| state.is_over())
    }

    /// How many states there are.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether somebody waits for a lock that `client`, whose holdings these are, has.
    pub(crate) fn are_awaited(&self, client: &Client) -> bool {
        self.states.values().any(|state| match &state.what {
            What::Lock(lock) => state.file.state().locks.is_awaited(lock_owner(client, lock.owner)),
            _ => false,
        })
    }

    /// How many owners there are.
    pub(crate) fn owners_len(&self) -> usize {
        self.owners.len()
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn get(&self, number: u32) -> Option<&State> {
        self.states.get(&number)
    }

    /// An open.
    ///
    /// # Errors
    /// [`Error::BadStateid`]: it is another kind of state, or none.
    pub(crate) fn opening(&self, number: u32) -> Result<&Opening> {
        match self.get(number).map(|state| &state.what) {
            Some(What::Open(opening)) => Ok(opening),
            _ => Err(Error::BadStateid),
        }
    }

    /// Whether a state is of an owner of this principal, or one that the client's users share.
    pub(crate) fn is_of(&self, state: &State, principal: Principal) -> bool {
        match &state.what {
            What::Open(Opening { owner, shared, .. })
            | What::Lock(Locking { owner, shared, .. }) => {
                *shared || self.owner(*owner).is_some_and(|owner| owner.principal == principal)
            }
            What::Delegation(_) | What::Revoked => false,
        }
    }

    /// Whether a principal has an owner.
    pub(crate) fn has_owner_of(&self, principal: Principal) -> bool {
        self.owners.values().any(|owner| owner.principal == principal)
    }

    /// An open has another share from now on.
    pub(crate) fn share(&mut self, number: u32, share: Share) {
        if let Some(What::Open(opening)) = self.get_mut(number).map(|state| &mut state.what) {
            opening.share = share;
        }
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut State> {
        self.states.get_mut(&number)
    }

    pub(crate) fn owner(&self, number: u32) -> Option<&Owner> {
        self.owners.get(&number)
    }

    pub(crate) fn owner_mut(&mut self, number: u32) -> Option<&mut Owner> {
        self.owners.get_mut(&number)
    }

    /// An owner asks for a lock in a file of this export: told of it, it must know the file again.
    pub(crate) fn comes_by(&mut self, owner: u32, export: u32) {
        if let Some(owner) = self.owners.get_mut(&owner) {
            owner.export = export;
        }
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = (u32, &Owner)> {
        self.owners.iter().map(|(number, owner)| (*number, owner))
    }

    pub(crate) fn states(&self) -> impl Iterator<Item = (u32, &State)> {
        self.states.iter().map(|(number, state)| (*number, state))
    }

    /// The number of an owner, if it is known.
    pub(crate) fn find_owner(&self, kind: OwnerKind, name: &[u8]) -> Option<u32> {
        match kind {
            OwnerKind::Open => self.open_owners.get(name).copied(),
            OwnerKind::Lock => self.lock_owners.get(name).copied(),
        }
    }

    /// A new owner.
    pub(crate) fn add_owner(&mut self, limits: &Limits, owner: Owner) -> Result<u32> {
        if self.owners.len() >= limits.owners_per_client {
            return Err(Error::Resource);
        }
        self.memory.take(owner.bytes())?;
        let number = self.number();
        self.names(owner.kind).insert(owner.name.clone(), number);
        self.owners.insert(number, owner);
        Ok(number)
    }

    fn names(&mut self, kind: OwnerKind) -> &mut HashMap<Box<[u8]>, u32> {
        match kind {
            OwnerKind::Open => &mut self.open_owners,
            OwnerKind::Lock => &mut self.lock_owners,
        }
    }

    /// Forgets an owner.
    pub(crate) fn remove_owner(&mut self, number: u32) -> Option<Owner> {
        let owner = self.owners.remove(&number)?;
        self.memory.give_back(owner.bytes());
        self.names(owner.kind).remove(&owner.name);
        Some(owner)
    }

    /// Forgets an owner that has nothing any more.
    pub(crate) fn forget_idle(&mut self, number: u32) {
        if self.owners.get(&number).is_some_and(|owner| owner.states == 0) {
            self.remove_owner(number);
        }
    }

    /// Forgets owners that have had nothing since `before`, as those have that waited for a lock
    /// and went away. They are looked for when there are twice as many owners as were left the
    /// last time, so that it costs next to nothing.
    pub(crate) fn reap_owners(&mut self, before: Duration) {
        if self.owners.len() < self.reap_at.max(REAPED_MIN) {
            return;
        }
        let stale = self.owners().filter(|(_, owner)| owner.is_stale(before));
        let stale: Vec<u32> = stale.map(|(number, _)| number).collect();
        for number in stale {
            self.remove_owner(number);
        }
        self.reap_at = self.owners.len() * 2;
    }

    /// The state of an open-owner, or of an owner of a host, for a file.
    pub(crate) fn find(&self, owner: u32, file: &Arc<File>) -> Option<u32> {
        self.by_subject.get(&(owner, place(file))).copied()
    }

    /// The state of a lock-owner under an open.
    pub(crate) fn find_lock(&self, owner: u32, open: u32) -> Option<u32> {
        self.by_subject.get(&(owner, open as usize)).copied()
    }

    /// A host of NLM has asked for a state of its.
    pub(crate) fn asked(&mut self, number: u32, host: &Client) {
        if let Some(state) = self.states.get_mut(&number) {
            state.seqid = host.monitor_state().cast_unsigned();
        }
    }

    /// The states of a host of NLM that it has not asked for since it started anew for the
    /// `monitor_state`-th time. Not by owner: Linux numbers its own from one after every start.
    pub(crate) fn asked_before(&self, monitor_state: i32) -> Vec<u32> {
        let before = |state: &State| state.seqid.cast_signed() != monitor_state;
        self.states().filter(|(_, state)| before(state)).map(|(number, _)| number).collect()
    }

    /// The lock states under an open.
    pub(crate) fn locks_under(&self, open: u32) -> Vec<u32> {
        self.under.get(&open).cloned().unwrap_or_default()
    }

    /// A new state.
    pub(crate) fn insert(
        &mut self,
        limits: &Limits,
        (since, file): (Duration, &Arc<File>),
        what: What,
    ) -> Result<u32> {
        if self.states.len() >= limits.states_per_client {
            return Err(Error::Resource);
        }
        match &what {
            // It was seen before that there is room, and the lock is held by now.
            What::Lock(_) => self.memory.adjust(0, what.bytes()),
            _ => self.memory.take(what.bytes())?,
        }
        let number = self.number();
        if let What::Lock(Locking { open: open @ 1.., .. }) = what {
            self.under.entry(open).or_default().push(number);
        }
        if let Some(owner) = what.owner() {
            self.by_subject.insert((owner, what.subject(file)), number);
            if let Some(owner) = self.owners.get_mut(&owner) {
                owner.states += 1;
            }
        }
        self.counts.add(&what);
        let (file, since_seconds) = (Arc::clone(file), since.as_secs() as u32);
        self.states.insert(number, State { file, seqid: 1, since_seconds, what });
        Ok(number)
    }

    /// Whether there is memory for one lock more, which may make three ranges of one.
    pub(crate) fn has_room(&self) -> bool {
        self.memory.has_room(STATE_BYTES + 2 * RANGE_BYTES)
    }

    /// The owner of a lock state has so many ranges of the file more, or less.
    pub(crate) fn count_ranges(&mut self, number: u32, more: isize) {
        let Some(What::Lock(locking)) = self.states.get_mut(&number).map(|lock| &mut lock.what)
        else {
            return;
        };
        let before = locking.range_bytes();
        let ranges = (locking.ranges as usize).saturating_add_signed(more);
        locking.ranges = u32::try_from(ranges).unwrap_or(u32::MAX);
        self.memory.adjust(before, locking.range_bytes());
    }

    /// Takes a state out.
    pub(crate) fn remove(&mut self, number: u32) -> Option<State> {
        let state = self.states.remove(&number)?;
        self.unlist(number, &state);
        self.counts.take(&state.what);
        self.memory.give_back(state.what.bytes());
        Some(state)
    }

    /// An open is closed, and stays only for a retry of its CLOSE; gives what it was.
    pub(crate) fn close(&mut self, number: u32) -> Option<State> {
        let state = self.states.get_mut(&number)?;
        self.counts.take(&state.what);
        let closed = state.clone();
        state.file = File::keepsake(state.file.key);
        if let What::Open(opening) = &mut state.what {
            opening.closed = true;
        }
        self.unlist(number, &closed);
        Some(closed)
    }

    /// A delegation is taken back by force.
    pub(crate) fn revoke(&mut self, number: u32) -> bool {
        let Some(state) = self.states.get_mut(&number) else { return false };
        if !matches!(state.what, What::Delegation(_)) {
            return false;
        }
        self.counts.take(&state.what);
        (state.what, state.file) = (What::Revoked, File::keepsake(state.file.key));
        self.counts.add(&state.what);
        true
    }

    fn unlist(&mut self, number: u32, state: &State) {
        if let What::Lock(Locking { open, .. }) = state.what
            && let Some(under) = self.under.get_mut(&open)
        {
            under.retain(|other| *other != number);
            if under.is_empty() {
                self.under.remove(&open);
            }
        }
        let Some(owner) = state.what.owner() else { return };
        let at = (owner, state.what.subject(&state.file));
        if self.by_subject.get(&at) == Some(&number) {
            self.by_subject.remove(&at);
            if let Some(owner) = self.owners.get_mut(&owner) {
                owner.states -= 1;
            }
        }
    }

    /// A number that no state, owner or copy has.
    pub(crate) fn number(&mut self) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1);
            let taken = self.states.contains_key(&self.next)
                || self.owners.contains_key(&self.next)
                || self.offloads.has(self.next);
            if self.next != 0 && !taken {
                return self.next;
            }
        }
    }
}

impl State {
    /// How long it has been there, in whole seconds.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        Duration::from_secs(now.as_secs().saturating_sub(self.since_seconds.into()))
    }

    /// Whose it is, if it is an owner's.
    pub(crate) const fn owner(&self) -> Option<u32> {
        self.what.owner()
    }

    /// Whether it is only remembered.
    fn is_over(&self) -> bool {
        match &self.what {
            What::Open(opening) => opening.closed,
            What::Revoked => true,
            What::Lock(_) | What::Delegation(_) => false,
        }
    }

    /// Changes it: its stateid is another from now on. The seqid never is zero (RFC 8881, 8.2.2).
    pub(crate) fn change(&mut self, client: &Client, number: u32) -> Stateid {
        self.seqid = self.seqid.checked_add(1).unwrap_or(1);
        Stateid::new(client.id, number, self.seqid)
    }
}

impl Locking {
    /// How much memory its ranges take.
    const fn range_bytes(&self) -> usize {
        self.ranges as usize * RANGE_BYTES
    }
}

impl What {
    /// How much memory it takes.
    const fn bytes(&self) -> usize {
        match self {
            Self::Lock(locking) => STATE_BYTES + locking.range_bytes(),
            Self::Open(_) | Self::Delegation(_) | Self::Revoked => STATE_BYTES,
        }
    }

    /// What an owner has one state of: a file; of locks, an open of it (RFC 8881, 9.1.3). A
    /// lock-owner of a client has locks under opens only, and one of a host under none.
    fn subject(&self, file: &Arc<File>) -> usize {
        match self {
            Self::Lock(Locking { open: open @ 1.., .. }) => *open as usize,
            _ => place(file),
        }
    }

    const fn owner(&self) -> Option<u32> {
        match self {
            Self::Open(opening) => Some(opening.owner),
            Self::Lock(locking) => Some(locking.owner),
            Self::Delegation(_) | Self::Revoked => None,
        }
    }
}

/// What a file is known by as long as somebody has it: there is one of each, and it stays where it
/// is.
fn place(file: &Arc<File>) -> usize {
    Arc::as_ptr(file) as usize
}

/// The number of a lock-owner among all clients'.
pub(crate) const fn lock_owner(client: &Client, owner: u32) -> u64 {
    (client.id.number() as u64) << 32 | owner as u64
}

/// The number of the client that has a [`lock_owner`].
pub(crate) const fn client_of_lock_owner(owner: u64) -> u32 {
    (owner >> 32) as u32
}

impl Engine {
    /// Takes all that a client held from the files.
    pub(crate) fn release(&self, now: Duration, client: &Arc<Client>, holdings: Holdings) {
        let mut wakes = Vec::new();
        for (number, state) in holdings.states {
            let holder = Holder { client: client.id, state: number };
            self.release_state(now, holder, &state, &mut wakes);
        }
        self.announce(wakes);
    }

    /// Takes a state that is no more from its file, which may be forgotten then; who can have what
    /// it kept is collected in `wakes`.
    pub(crate) fn release_state(
        &self,
        now: Duration,
        holder: Holder,
        state: &State,
        wakes: &mut Wakes,
    ) {
        let mut offers = Vec::new();
        let mut file = state.file.state();
        match &state.what {
            What::Open(_) => self.set_share(&mut file, holder, None),
            What::Lock(locking) => {
                let owner = u64::from(holder.client.number()) << 32 | u64::from(locking.owner);
                let all = file.locks.held_by(owner).map(|(range, _)| range);
                let all = all.reduce(crate::ByteRange::hull);
                all.into_iter().for_each(|range| self.tell_unlocked(state.file.key, range));
                file.locks.forget(now, owner, &mut offers);
            }
            What::Delegation(_) => self.drop_delegation(&state.file, &mut file, holder),
            What::Revoked => {}
        }
        drop(file);
        self.let_go(now, &state.file);
        wakes.extend(offers.into_iter().map(|offer| (state.file.key, offer)));
    }
}
