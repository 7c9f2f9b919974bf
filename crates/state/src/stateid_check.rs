//! Stateids of READ, WRITE and SETATTR, and the operations about stateids themselves.

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::client_state::{StateKind, lock_owner};
use crate::courtesy::Obstacle;
use crate::file::{File, Holder};
use crate::{Bearer, ClientId, Engine, Error, FileKey, Result, Sender, Share, Special, Stateid};

/// An access to the data of a file.
#[derive(Debug, Clone, Copy)]
pub struct Io<'a> {
    /// The file.
    pub file: &'a FileKey,
    /// [`Share::READ`] or [`Share::WRITE`]; 0 for neither.
    pub access: u32,
    /// The user, if it matters.
    pub user: Option<&'a Arc<Cred<Disk>>>,
}

/// The bearer of a stateid that was accepted.
#[derive(Debug, Clone)]
pub struct Shown<'a> {
    /// The client.
    pub bearer: Bearer<'a>,
    /// True if [`Io::user`] opened the file for this access and was judged then, with the same
    /// groups: many users may be mapped to one.
    pub opened: bool,
}

/// The verdict on a stateid that names a state.
enum Judged<'a> {
    /// The client may do it under its state.
    Shown(Shown<'a>),
    /// It is shown by another user than the one that opened the file, as by a program that has
    /// inherited it. It counts as no stateid, except that the deny modes of this open are ignored.
    /// A delegation belongs to the client, for all its users.
    Foreign(Holder),
}

/// The deny modes that hold against an access without an open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denials {
    All,
    /// Those of other opens than this one.
    ButOf(Holder),
    None,
}

impl Io<'_> {
    /// Returns whether it is done by just this user.
    fn is_of(&self, user: &Option<Arc<Cred<Disk>>>) -> bool {
        self.user.is_some() && self.user == user.as_ref()
    }
}

impl Engine {
    /// Checks whether a stateid lets its bearer read or write a file; returns the bearer if the
    /// stateid names a state. Without an open the answer depends on the opens and delegations of
    /// others (RFC 8881, 9.1.2).
    ///
    /// # Errors
    /// As a stateid is refused; [`Error::Openmode`]; [`Error::ShareDenied`] (`LOCKED` for READ and
    /// WRITE), [`Error::Delay`], [`Error::Grace`].
    pub fn check_io<'a>(
        &self,
        sender: Sender<'a>,
        stateid: &Stateid,
        io: &Io<'_>,
    ) -> Result<Option<Shown<'a>>> {
        self.check_io_if(sender, stateid, io, &|| true)
    }

    /// The same for a caller whose rights are not known yet: `may` judges them, and only if a
    /// delegation would be recalled.
    ///
    /// # Errors
    /// As [`Engine::check_io`]; [`Error::Perm`]: `may` says no, and nothing is recalled.
    pub fn check_io_if<'a>(
        &self,
        sender: Sender<'a>,
        stateid: &Stateid,
        io: &Io<'_>,
        may: &dyn Fn() -> bool,
    ) -> Result<Option<Shown<'a>>> {
        let by = || (sender.now, sender.client.map(|client| client.id));
        match stateid.special() {
            None => match self.check_state(sender, stateid, io)? {
                Judged::Shown(shown) => Ok(Some(shown)),
                Judged::Foreign(open) => {
                    let by = (sender.now, Some(open.client));
                    self.check_anonymous(by, (io, may), Denials::ButOf(open)).map(|()| None)
                }
            },
            Some(Special::Anonymous) => {
                self.check_anonymous(by(), (io, may), Denials::All).map(|()| None)
            }
            Some(Special::ReadBypass) => {
                let writes = io.access & Share::WRITE != 0;
                let heeded = if writes { Denials::All } else { Denials::None };
                self.check_anonymous(by(), (io, may), heeded).map(|()| None)
            }
            Some(Special::Current | Special::Invalid) => Err(Error::BadStateid),
        }
    }

    /// Checks an access under a stateid that names a state.
    fn check_state<'a>(
        &self,
        sender: Sender<'a>,
        stateid: &Stateid,
        io: &Io<'_>,
    ) -> Result<Judged<'a>> {
        let found = self.find(sender, stateid)?;
        let state = found.client.live()?;
        let it = state.at(found.number)?;
        if it.file.key != *io.file {
            return Err(Error::BadStateid);
        }
        it.check(sender, stateid)?;
        let (open, opening) = match &it.what {
            StateKind::Delegation(delegating) => {
                found.renew(sender);
                let opened =
                    delegating.access & io.access == io.access && io.is_of(&delegating.user);
                let allowed = delegating.kind.allows(io.access);
                drop(state);
                let shown = Shown { bearer: found.client, opened };
                return if allowed { Ok(Judged::Shown(shown)) } else { Err(Error::Openmode) };
            }
            StateKind::Lock(locking) => (locking.open, state.holdings.opening(locking.open)?),
            StateKind::Open(opening) => (found.number, opening),
            StateKind::Revoked => return Err(Error::BadStateid),
        };
        let confirmed = || state.holdings.owner(opening.owner).is_some_and(|owner| owner.confirmed);
        // Sessions have no owners that are to be confirmed.
        if sender.is_unsequenced() && !confirmed() {
            return Err(Error::BadStateid);
        }
        let granted = opening.share.access & io.access == io.access;
        let opened = granted && io.is_of(&opening.user);
        let holder = Holder { client: found.client.id, state: open };
        if !opened && found.may_change(&state, (sender, None)).is_err() {
            return Ok(Judged::Foreign(holder));
        }
        found.renew(sender);
        if !granted {
            may_read_too(&it.file, holder, io.access)?;
        }
        drop(state);
        Ok(Judged::Shown(Shown { bearer: found.client, opened }))
    }

    /// Checks an access without an open, for a client if it is known.
    fn check_anonymous(
        &self,
        (now, mine): (Duration, Option<ClientId>),
        (io, may): (&Io<'_>, &dyn Fn() -> bool),
        heeded: Denials,
    ) -> Result<()> {
        if heeded != Denials::None && self.is_in_grace() {
            return Err(Error::Grace);
        }
        let Some(file) = self.files.get(io.file) else { return Ok(()) };
        let share = Share::access(io.access);
        let mine = file.covered(io.file, mine);
        self.unless_expired(now, || {
            let shares = |but| file.state().shares.conflict(but, share);
            let denied = match heeded {
                Denials::None => None,
                Denials::ButOf(open) => shares(Some(open)),
                Denials::All => shares(None),
            };
            match denied {
                Some(holder) => Err(Obstacle::Share(holder)),
                None => self.try_break_if(now, &file, (mine, share), may),
            }
        })
    }

    /// TEST_STATEID of one stateid (RFC 8881, 18.48).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn test_stateid(&self, sender: Sender<'_>, stateid: &Stateid) -> Result<()> {
        if stateid.special().is_some() {
            return Err(Error::BadStateid);
        }
        let found = self.find(sender, stateid)?;
        found.look(&*found.client.live()?, sender, stateid).map(|_| ())
    }

    /// FREE_STATEID (RFC 8881, 18.38) of a lock state without locks, or of a revoked delegation.
    ///
    /// # Errors
    /// As a stateid is refused; [`Error::WrongCred`]: the locks are another principal's;
    /// [`Error::LocksHeld`].
    pub fn free_stateid(&self, sender: Sender<'_>, stateid: &Stateid) -> Result<()> {
        let found = self.find(sender, stateid)?;
        let (client, number) = (&found.client, found.number);
        let mut state = client.live()?;
        match found.look(&state, sender, stateid) {
            Err(Error::DelegRevoked) => {
                state.holdings.remove(number);
                client.note_revoked(&state);
                if state.holdings.counts().revoked == 0 {
                    // The client knows its losses now: its further state of these files may be
                    // reclaimed.
                    self.record(client.record());
                }
                return Ok(());
            }
            Err(error) => return Err(error),
            Ok(_) => found.may_change(&state, (sender, None))?,
        }
        let lock = state.holdings.get(number).ok_or(Error::BadStateid)?;
        let StateKind::Lock(locking) = &lock.what else { return Err(Error::LocksHeld) };
        let owner = locking.owner;
        let held = lock_owner(client.id, owner);
        if lock.file.state().locks.held_by(held).next().is_some() {
            return Err(Error::LocksHeld);
        }
        if let Some(lock) = state.holdings.remove(number) {
            let holder = Holder { client: client.id, state: number };
            let mut wakes = Vec::new();
            self.release_state(sender.now, holder, &lock, &mut wakes);
            // Linux frees the stateid of each process that is done, and comes with another owner.
            state.holdings.forget_idle(owner);
            drop(state);
            self.announce(wakes);
        }
        Ok(())
    }
}

/// An open for writing lets its holder read, too, unless others deny it: writing a part of a block
/// may need reading the rest (RFC 8881, 9.1.2).
fn may_read_too(file: &File, holder: Holder, access: u32) -> Result<()> {
    if access != Share::READ {
        return Err(Error::Openmode);
    }
    match file.state().shares.conflict(Some(holder), Share::access(access)) {
        Some(_) => Err(Error::ShareDenied),
        None => Ok(()),
    }
}
