//! LOCKU and RELEASE_LOCKOWNER, and locks that end with the CLOSE of their open.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, LockState, OwnerKind, StateKind, lock_owner};
use crate::file::{File, FileState, Holder};
use crate::release::Wakes;
use crate::{
    ByteRange, Caller, Client, ClientProtocol, Engine, Error, FileKey, Locals, Result, Sender,
    Stateid,
};

impl Engine {
    /// LOCKU.
    ///
    /// # Errors
    /// The errors of an invalid stateid; [`Error::Resource`]: the unlock would split a range, and
    /// the bound of ranges is reached.
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

    /// LOCKU, with programs on the server: the freed bytes are unlocked in the file system, too.
    ///
    /// # Errors
    /// The errors of [`Engine::unlock`].
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

    /// Frees bytes; returns the stateid, and the number of ranges of the file that are locked now.
    fn free(
        &self,
        sender: Sender<'_>,
        stateid: &Stateid,
        (key, range): (&FileKey, ByteRange),
    ) -> Result<(Stateid, usize)> {
        let found = self.find(&sender, stateid)?;
        let (client, number) = (&*found.client, found.number);
        let mut state = client.live()?;
        let has_room = state.holdings.has_room();
        let lock = found.current(&mut state, (&sender, key), stateid)?;
        let StateKind::Lock(locking) = &lock.what else { return Err(Error::BadStateid) };
        let owner = lock_owner(client.id, locking.owner);
        let mut offers = Vec::new();
        let mut on_file = lock.file.state();
        self.may_split(&on_file, (owner, range), has_room)?;
        let (before, _) = on_file.locks.counts();
        on_file.locks.expire(sender.now, &mut offers);
        on_file.locks.unlock(sender.now, owner, range, &mut offers);
        let (left, _) = on_file.locks.counts();
        drop(on_file);
        let woken = (!offers.is_empty()).then(|| Arc::clone(&lock.file));
        let stateid = Stateid { seqid: lock.change(), ..*stateid };
        state.holdings.count_ranges(number, left.cast_signed() - before.cast_signed());
        drop(state);
        if let Some(file) = woken {
            self.wake_waiters(&file, offers);
        }
        Ok((stateid, left))
    }

    /// Checks that an owner may free bytes. An unlock in the middle of a range splits it in two,
    /// and an owner that frees every other byte could make as many ranges as there are bytes.
    ///
    /// # Errors
    /// [`Error::Resource`]: the bound of ranges is reached.
    pub(crate) fn may_split(
        &self,
        on_file: &FileState,
        (owner, range): (u64, ByteRange),
        has_room: bool,
    ) -> Result<()> {
        let full = !has_room || on_file.locks.len() >= self.settings.limits.locks_per_file;
        if full && on_file.locks.splits(owner, range) { Err(Error::Resource) } else { Ok(()) }
    }

    /// RELEASE_LOCKOWNER (RFC 7530, 16.37): forgets an owner that has no locks.
    ///
    /// # Errors
    /// [`Error::WrongCred`]: the owner belongs to another principal. [`Error::LocksHeld`].
    pub fn release_lockowner(
        &self,
        (now, caller): (Duration, Caller),
        client: &Client,
        owner: &[u8],
    ) -> Result<()> {
        let mut state = client.live()?;
        let Some(owner) = state.holdings.find_owner(OwnerKind::Lock, owner) else { return Ok(()) };
        if state.borrows(client, &caller, owner) {
            return Err(Error::WrongCred);
        }
        let number = lock_owner(client.id, owner);
        let of_owner =
            |what: &StateKind| matches!(what, StateKind::Lock(locking) if locking.owner == owner);
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

    /// Frees all locks of an open.
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
            let StateKind::Lock(LockState { owner, ranges, .. }) = lock.what else { continue };
            match other_lock(state, client, (&lock.file, owner)) {
                // A lock-owner has one set of locks in a file, even if it locks through several
                // opens.
                Some(other) => state.holdings.count_ranges(other, ranges as isize),
                None => {
                    let holder = Holder { client: client.id, state: number };
                    self.release_state(now, holder, &lock, wakes);
                }
            }
            if client.protocol == ClientProtocol::ExchangeId {
                state.holdings.forget_idle(owner);
            }
        }
    }
}

/// Returns another lock state of an owner in a file, through another open of the client.
pub(crate) fn other_lock(
    state: &ClientState,
    client: &Client,
    (file, owner): (&Arc<File>, u32),
) -> Option<u32> {
    let on_file = file.state();
    on_file.shares.opens_of(client.id).find_map(|open| state.holdings.find_lock(owner, open))
}
