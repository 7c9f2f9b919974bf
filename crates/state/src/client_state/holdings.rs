//! The state of one client: its owners, and its states by number.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::foreign_names::ForeignNames;
use super::offload::Offloads;
use super::owner::{Owner, OwnerKind};
use super::state::{HeldCounts, LockState, OpenState, State, StateKind, address, lock_owner};
use super::{Revocation, RevokedCounts, RevokedState};
use crate::file::File;
use crate::id_hasher::BuildIdHasher;
use crate::layout::LayoutState;
use crate::limits::{LAYOUT_RANGES_MAX, RANGE_BYTES, REAPED_MIN, STATE_BYTES};
use crate::memory_pool::{Allotment, Pool, PoolShare};
use crate::{
    ClientId, Error, FileKey, Grantee, Limits, Principal, Result, Share, StateName, Stateid,
    StatusFlags,
};

/// Owners, states and copies of one client.
pub(crate) struct Holdings {
    next: u32,
    pub(crate) states: HashMap<u32, State, BuildIdHasher>,
    foreign: ForeignNames,
    owners: HashMap<u32, Owner, BuildIdHasher>,
    open_owners: HashMap<Box<[u8]>, u32, RandomState>,
    lock_owners: HashMap<Box<[u8]>, u32, RandomState>,
    /// The number of each state by its owner and its [`StateKind::subject`].
    by_subject: HashMap<(u32, usize), u32, BuildIdHasher>,
    /// The lock states of each open that has any. Lock states of hosts belong to no open.
    under: HashMap<u32, Vec<u32>, BuildIdHasher>,
    /// Number of owners at which idle ones are removed.
    reap_at: usize,
    counts: HeldCounts,
    revoked: RevokedCounts,
    /// The number of states that rest on grants.
    on_grants: usize,
    /// Copies that are under way or have ended. They do not count as state that a client would
    /// lose.
    pub(crate) offloads: Offloads,
    /// The memory that the holdings take.
    memory: Allotment,
}

impl Holdings {
    /// Makes empty holdings. Their memory is taken from this pool, and from the share of the
    /// clients of one origin.
    pub(crate) fn new(pool: &Arc<Pool>, share: Arc<PoolShare>) -> Self {
        Self::in_memory(Allotment::of(pool, share))
    }

    /// Removes and returns all holdings.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self::in_memory(self.memory.anew());
        std::mem::replace(self, empty)
    }

    fn in_memory(memory: Allotment) -> Self {
        Self {
            next: 0,
            states: HashMap::default(),
            foreign: ForeignNames::default(),
            owners: HashMap::default(),
            open_owners: HashMap::default(),
            lock_owners: HashMap::default(),
            by_subject: HashMap::default(),
            under: HashMap::default(),
            reap_at: 0,
            counts: HeldCounts::default(),
            revoked: RevokedCounts::default(),
            on_grants: 0,
            offloads: Offloads::default(),
            memory,
        }
    }

    /// Returns whether no state would be lost with the client: all its states are closed or
    /// revoked.
    pub(crate) fn is_empty(&self) -> bool {
        self.states.values().all(|state| state.is_over())
    }

    /// Returns the number of states.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns whether another owner waits for a lock of `client`, whose holdings these are.
    pub(crate) fn are_awaited(&self, client: ClientId) -> bool {
        self.states.values().any(|state| match &state.what {
            StateKind::Lock(lock) => {
                state.file.state().locks.is_awaited(lock_owner(client, lock.owner))
            }
            _ => false,
        })
    }

    /// Returns the number of owners.
    pub(crate) fn owners_len(&self) -> usize {
        self.owners.len()
    }

    pub(crate) const fn counts(&self) -> HeldCounts {
        self.counts
    }

    /// Returns the flags by which SEQUENCE tells the client of its revoked states.
    pub(crate) fn revoked_flags(&self) -> StatusFlags {
        self.revoked.flags()
    }

    /// Returns whether a state rests on grants.
    pub(crate) const fn rest_on_grants(&self) -> bool {
        self.on_grants > 0
    }

    pub(crate) fn get(&self, number: u32) -> Option<&State> {
        self.states.get(&number)
    }

    /// Returns an open.
    ///
    /// # Errors
    /// [`Error::BadStateid`]: the state does not exist, or is no open.
    pub(crate) fn opening(&self, number: u32) -> Result<&OpenState> {
        match self.get(number).map(|state| &state.what) {
            Some(StateKind::Open(opening)) => Ok(opening),
            _ => Err(Error::BadStateid),
        }
    }

    /// Returns whether a state belongs to this principal, or to all users of the client. All users
    /// may learn that a state was revoked.
    pub(crate) fn is_of(&self, state: &State, principal: Principal) -> bool {
        match &state.what {
            StateKind::Open(OpenState { owner, shared, .. })
            | StateKind::Lock(LockState { owner, shared, .. }) => {
                *shared || self.owner(*owner).is_some_and(|owner| owner.principal == principal)
            }
            StateKind::Delegation(delegating) => delegating.principal == principal,
            StateKind::Layout(_) | StateKind::Revoked(_) => true,
        }
    }

    /// Returns what is kept of a state that is revoked. Its owner may be forgotten then.
    fn revoked(&self, what: &StateKind, why: Revocation) -> RevokedState {
        let principal = match what {
            StateKind::Open(OpenState { owner, shared: false, .. })
            | StateKind::Lock(LockState { owner, shared: false, .. }) => {
                self.owner(*owner).map(|owner| owner.principal)
            }
            StateKind::Delegation(delegating) => Some(delegating.principal),
            StateKind::Revoked(revoked) => revoked.principal,
            StateKind::Open(_) | StateKind::Lock(_) | StateKind::Layout(_) => None,
        };
        RevokedState { why, principal }
    }

    /// Returns whether the client has an owner of this principal.
    pub(crate) fn has_owner_of(&self, principal: Principal) -> bool {
        self.owners.values().any(|owner| owner.principal == principal)
    }

    /// Sets the share of an open.
    pub(crate) fn share(&mut self, number: u32, share: Share) {
        if let Some(StateKind::Open(opening)) = self.get_mut(number).map(|state| &mut state.what) {
            opening.share = share;
        }
    }

    /// Makes an open rest on the grants of this key, whatever it rested on before.
    pub(crate) fn rest_open_on(&mut self, number: u32, grantee: &Arc<Grantee>) {
        let Some(StateKind::Open(opening)) = self.states.get_mut(&number).map(|it| &mut it.what)
        else {
            return;
        };
        if opening.grantee.replace(Arc::clone(grantee)).is_none() {
            self.on_grants += 1;
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

    /// Notes the export through which an owner asks for a lock. A callback about the lock names the
    /// file by its handle in this export.
    pub(crate) fn comes_by(&mut self, owner: u32, export: u32) {
        if let Some(owner) = self.owners.get_mut(&owner) {
            owner.export = export;
        }
    }

    /// Notes that an owner is used now.
    pub(crate) fn see_owner(&mut self, number: u32, now: Duration) {
        if let Some(owner) = self.owners.get_mut(&number) {
            owner.seen(now);
        }
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = (u32, &Owner)> {
        self.owners.iter().map(|(number, owner)| (*number, owner))
    }

    pub(crate) fn states(&self) -> impl Iterator<Item = (u32, &State)> {
        self.states.iter().map(|(number, state)| (*number, state))
    }

    /// Returns the number of an owner, if it is known.
    pub(crate) fn find_owner(&self, kind: OwnerKind, name: &[u8]) -> Option<u32> {
        match kind {
            OwnerKind::Open => self.open_owners.get(name).copied(),
            OwnerKind::Lock => self.lock_owners.get(name).copied(),
        }
    }

    /// Adds an owner; returns its number.
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

    fn names(&mut self, kind: OwnerKind) -> &mut HashMap<Box<[u8]>, u32, RandomState> {
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

    /// Forgets an owner that has no states any more.
    pub(crate) fn forget_idle(&mut self, number: u32) {
        if self.owners.get(&number).is_some_and(|owner| owner.states == 0) {
            self.remove_owner(number);
        }
    }

    /// Forgets an owner without states, unless it is in use, or waits for a retry of its CLOSE.
    pub(crate) fn forget_stateless(&mut self, number: u32) {
        let Some(owner) = self.owners.get_mut(&number) else { return };
        owner.closed = owner.closed.filter(|closed| self.states.contains_key(closed));
        if owner.closed.is_none() && !owner.busy {
            self.forget_idle(number);
        }
    }

    /// Forgets owners that have had no state since `before`, such as owners that gave up waiting
    /// for a lock. The search runs when the number of owners has doubled since the last search, so
    /// that its average cost is small.
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

    /// Returns the state of an open-owner, or of an owner of a host, for a file.
    pub(crate) fn find(&self, owner: u32, file: &Arc<File>) -> Option<u32> {
        self.by_subject.get(&(owner, address(file))).copied()
    }

    /// Returns the state of a lock-owner for an open.
    pub(crate) fn find_lock(&self, owner: u32, open: u32) -> Option<u32> {
        self.by_subject.get(&(owner, open as usize)).copied()
    }

    /// Notes the monitor's state at a request of a host of NLM for one of its states.
    pub(crate) fn asked(&mut self, number: u32, monitor_state: i32) {
        if let Some(state) = self.states.get_mut(&number) {
            state.seqid = monitor_state.cast_unsigned();
        }
    }

    /// Returns the states that a host of NLM last asked for before its restart number
    /// `monitor_state`. Owners are not compared: Linux numbers its owners from one after every
    /// start.
    pub(crate) fn asked_before(&self, monitor_state: i32) -> Vec<u32> {
        let before = |state: &State| state.seqid.cast_signed() != monitor_state;
        self.states().filter(|(_, state)| before(state)).map(|(number, _)| number).collect()
    }

    /// Returns the lock states of an open.
    pub(crate) fn locks_under(&self, open: u32) -> Vec<u32> {
        self.under.get(&open).cloned().unwrap_or_default()
    }

    /// Adds a state; returns its number.
    pub(crate) fn insert(
        &mut self,
        limits: &Limits,
        (since, file): (Duration, &Arc<File>),
        what: StateKind,
    ) -> Result<u32> {
        if self.states.len() >= limits.states_per_client {
            return Err(Error::Resource);
        }
        match &what {
            // `has_room` was called before, and the file already has the lock.
            StateKind::Lock(_) => self.memory.adjust(0, what.bytes()),
            _ => self.memory.take(what.bytes())?,
        }
        let number = self.number();
        self.list(number, file, &what);
        self.count(&what);
        let (file, since_seconds) = (Arc::clone(file), since.as_secs() as u32);
        self.states.insert(number, State { file, seqid: 1, since_seconds, what });
        Ok(number)
    }

    /// Returns the last number that was given to a state, an owner or a copy.
    pub(crate) const fn last_number(&self) -> u32 {
        self.next
    }

    /// Gives the numbers that follow this one. Two engines hardly ever give the same, so that a
    /// stateid of a state that ended at one of them does not name another state at the other.
    pub(crate) const fn continue_after(&mut self, number: u32) {
        self.next = number;
    }

    /// Returns the number of the state of `client`, whose holdings these are, that it knows by this
    /// name; none if it knows no state by it.
    pub(crate) fn number_of(&self, client: ClientId, name: StateName) -> Option<u32> {
        if name.client == client { Some(name.number) } else { self.foreign.number(name) }
    }

    /// Returns the files of the revoked states.
    pub(crate) fn revoked_files(&self) -> Vec<FileKey> {
        let revoked = self.states.values().filter(|it| it.what.revoked().is_some());
        revoked.map(|it| it.file.key).collect()
    }

    /// Returns the name that another engine gave to a state, if the client knows it by that.
    pub(crate) fn foreign_name(&self, number: u32) -> Option<StateName> {
        self.foreign.name(number)
    }

    /// Counts a change of a state of `client`, whose holdings these are; returns its next stateid.
    ///
    /// # Errors
    /// [`Error::BadStateid`]: the state does not exist.
    pub(crate) fn change(&mut self, client: ClientId, number: u32) -> Result<Stateid> {
        let state = self.states.get_mut(&number).ok_or(Error::BadStateid)?;
        let seqid = state.change();
        Ok(self.foreign.name(number).unwrap_or(StateName { client, number }).at(seqid))
    }

    /// Returns whether a state, an owner or a copy has this number.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.states.contains_key(&number)
            || self.owners.contains_key(&number)
            || self.offloads.has(number)
    }

    /// Adds an owner under the number that it had in another engine.
    ///
    /// # Errors
    /// [`Error::Resource`].
    pub(crate) fn restore_owner(&mut self, number: u32, owner: Owner) -> Result<()> {
        self.memory.take(owner.bytes())?;
        self.names(owner.kind).insert(owner.name.clone(), number);
        self.owners.insert(number, owner);
        Ok(())
    }

    /// Adds a state of another engine, and the name by which the client knows it if that is not
    /// this number. Its owner must have been added before.
    ///
    /// # Errors
    /// [`Error::Resource`].
    pub(crate) fn restore(
        &mut self,
        number: u32,
        state: State,
        known_as: Option<StateName>,
    ) -> Result<()> {
        self.memory.take(state.what.bytes())?;
        if !state.is_closed() {
            self.list(number, &state.file, &state.what);
        }
        self.count(&state.what);
        known_as.into_iter().for_each(|name| self.foreign.insert(number, name));
        self.states.insert(number, state);
        Ok(())
    }

    /// Adds a state to the lists of its owner and its open.
    fn list(&mut self, number: u32, file: &Arc<File>, what: &StateKind) {
        if let StateKind::Lock(LockState { open: open @ 1.., .. }) = what {
            self.under.entry(*open).or_default().push(number);
        }
        if let Some(owner) = what.owner() {
            self.by_subject.insert((owner, what.subject(file)), number);
            if let Some(owner) = self.owners.get_mut(&owner) {
                owner.states += 1;
            }
        }
    }

    /// Returns whether there is memory for another lock, which may split one range into three.
    pub(crate) fn has_room(&self) -> bool {
        self.memory.has_room(STATE_BYTES + 2 * RANGE_BYTES)
    }

    /// Adds `more` to the number of ranges that a lock state counts.
    pub(crate) fn count_ranges(&mut self, number: u32, more: isize) {
        let Some(StateKind::Lock(locking)) =
            self.states.get_mut(&number).map(|lock| &mut lock.what)
        else {
            return;
        };
        let before = locking.range_bytes();
        let ranges = (locking.ranges as usize).saturating_add_signed(more);
        locking.ranges = u32::try_from(ranges).unwrap_or(u32::MAX);
        self.memory.adjust(before, locking.range_bytes());
    }

    /// Changes the ranges of a layout. A change adds at most one range to each iomode.
    ///
    /// # Errors
    /// [`Error::BadStateid`]: the state is no layout. [`Error::Resource`]: the layout has as many
    /// ranges as it may have, or there is no memory.
    pub(crate) fn change_layout<R>(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut LayoutState) -> R,
    ) -> Result<R> {
        let has_room = self.has_room();
        let Some(StateKind::Layout(layout)) = self.states.get_mut(&number).map(|it| &mut it.what)
        else {
            return Err(Error::BadStateid);
        };
        let before = layout.clone();
        let result = change(layout);
        let grows = layout.range_bytes() > before.range_bytes();
        let is_full = layout.ranges().iter().any(|ranges| *ranges > LAYOUT_RANGES_MAX);
        if grows && (is_full || !has_room) {
            *layout = before;
            return Err(Error::Resource);
        }
        self.memory.adjust(before.range_bytes(), layout.range_bytes());
        Ok(result)
    }

    /// Removes and returns a state.
    pub(crate) fn remove(&mut self, number: u32) -> Option<State> {
        let state = self.states.remove(&number)?;
        self.unlist(number, &state);
        self.uncount(&state.what);
        self.memory.give_back(state.what.bytes());
        self.foreign.remove(number);
        Some(state)
    }

    /// Closes an open, and keeps it only for a retry of its CLOSE. Returns the open as it was.
    pub(crate) fn close(&mut self, number: u32) -> Option<State> {
        let state = self.states.get_mut(&number)?;
        let closed = state.clone();
        state.file = File::placeholder(state.file.key);
        if let StateKind::Open(opening) = &mut state.what {
            opening.closed = true;
            opening.grantee = None;
        }
        self.uncount(&closed.what);
        self.unlist(number, &closed);
        Some(closed)
    }

    /// Marks a state as revoked, and keeps it only so that its client is told. Returns the state as
    /// it was; none if it was over before.
    pub(crate) fn revoke(&mut self, number: u32, why: Revocation, now: Duration) -> Option<State> {
        let before = self.states.get(&number).filter(|state| !state.is_over())?.clone();
        let revoked = self.revoked(&before.what, why);
        let state = self.states.get_mut(&number)?;
        state.file = File::placeholder(state.file.key);
        (state.what, state.since_seconds) = (StateKind::Revoked(revoked), now.as_secs() as u32);
        self.memory.adjust(before.what.bytes(), STATE_BYTES);
        self.uncount(&before.what);
        self.count(&StateKind::Revoked(revoked));
        self.unlist(number, &before);
        Some(before)
    }

    fn count(&mut self, what: &StateKind) {
        self.counts.add(what);
        self.on_grants += usize::from(what.grantee().is_some());
        if let StateKind::Revoked(revoked) = what {
            self.revoked.add(revoked.why);
        }
    }

    fn uncount(&mut self, what: &StateKind) {
        self.counts.take(what);
        self.on_grants -= usize::from(what.grantee().is_some());
        if let StateKind::Revoked(revoked) = what {
            self.revoked.take(revoked.why);
        }
    }

    fn unlist(&mut self, number: u32, state: &State) {
        if let StateKind::Lock(LockState { open, .. }) = state.what
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

    /// Returns a number that no state, owner or copy of the client has.
    pub(crate) fn number(&mut self) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1);
            if self.next != 0 && !self.has(self.next) {
                return self.next;
            }
        }
    }
}
