//! Checks of the stateids of READ, WRITE and SETATTR; TEST_STATEID and FREE_STATEID.

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::client_state::{ClientState, DelegationState, StateKind, lock_owner};
use crate::courtesy::Obstacle;
use crate::file::{File, Holder};
use crate::{
    Bearer, Caller, Client, ClientId, Engine, Error, FileKey, Record, Result, Sender, Share,
    Special, Stateid,
};

/// An access to the data of a file.
#[derive(Debug, Clone, Copy)]
pub struct Io<'a> {
    /// The file.
    pub file: &'a FileKey,
    /// [`Share::READ`] or [`Share::WRITE`]; 0 for neither.
    pub access: u32,
    /// The credentials of the user, if they matter.
    pub user: Option<&'a Arc<Cred<Disk>>>,
}

/// The bearer of a valid stateid.
#[derive(Debug, Clone)]
pub struct Shown<'a> {
    /// The client.
    pub bearer: Bearer<'a>,
    /// True if [`Io::user`] opened the file for this access and its rights were checked at that
    /// OPEN. The groups must be the same, since many users may be mapped to one.
    pub opened: bool,
}

/// The result for a stateid that names a state.
enum Judged<'a> {
    /// The state allows the access.
    Shown(Shown<'a>),
    /// Another user than the one that opened the file uses the stateid, for example through a
    /// program that inherited the open. The access counts as one without a stateid, except that the
    /// deny modes of this open are ignored. This does not apply to delegations, which belong to all
    /// users of the client.
    Foreign(Holder),
}

/// The deny modes that apply to an access without an open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denials {
    All,
    /// The deny modes of all opens except this one.
    ButOf(Holder),
    None,
}

impl Io<'_> {
    /// Returns whether exactly this user sends the operation.
    fn is_of(&self, user: &Option<Arc<Cred<Disk>>>) -> bool {
        self.user.is_some() && self.user == user.as_ref()
    }
}

impl DelegationState {
    /// Returns whether the user was checked for this access when the file was delegated.
    ///
    /// # Errors
    /// [`Error::Openmode`]: the delegation does not allow the access.
    fn opens(&self, io: &Io<'_>) -> Result<bool> {
        let opened = self.access & io.access == io.access && io.is_of(&self.user);
        if self.kind.allows(io.access) { Ok(opened) } else { Err(Error::Openmode) }
    }
}

impl Engine {
    /// Checks that a stateid allows its bearer to read or write a file; returns the bearer if the
    /// stateid names a state. For a special stateid the answer depends on the opens and delegations
    /// of other clients (RFC 8881, 9.1.2).
    ///
    /// # Errors
    /// The errors of an invalid stateid. [`Error::Openmode`]. [`Error::ShareDenied`] (`LOCKED` for
    /// READ and WRITE), [`Error::Delay`], [`Error::Grace`].
    pub fn check_io<'a>(
        &self,
        sender: Sender<'a>,
        stateid: &Stateid,
        io: &Io<'_>,
    ) -> Result<Option<Shown<'a>>> {
        self.check_io_if(sender, stateid, io, &|| true)
    }

    /// Does the same as [`Engine::check_io`] for a caller whose rights are not checked yet. `may`
    /// checks them. It is called if a delegation would be recalled, and in minor version 0 if a
    /// user shows a delegation that another user of its client received.
    ///
    /// # Errors
    /// The errors of [`Engine::check_io`]. [`Error::Perm`]: `may` returned false, and no delegation
    /// is recalled.
    pub fn check_io_if<'a>(
        &self,
        sender: Sender<'a>,
        stateid: &Stateid,
        io: &Io<'_>,
        may: &dyn Fn() -> bool,
    ) -> Result<Option<Shown<'a>>> {
        let by = || (sender.now, sender.client.map(|client| client.id));
        match stateid.special() {
            None => match self.check_state(&sender, stateid, (io, may))? {
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
        sender: &Sender<'a>,
        stateid: &Stateid,
        (io, may): (&Io<'_>, &dyn Fn() -> bool),
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
                let opened = delegating.opens(io)?;
                let is_its = || found.may_change(&state, (sender, None)).is_ok();
                let renews = sender.is_unsequenced().then(is_its);
                drop(state);
                // The delegation is for all users of the client, so their rights decide.
                if renews.is_some_and(|is_its| is_its || may()) {
                    found.renew(sender);
                }
                return Ok(Judged::Shown(Shown { bearer: found.client, opened }));
            }
            StateKind::Lock(locking) => (locking.open, state.holdings.opening(locking.open)?),
            StateKind::Open(opening) => (found.number, opening),
            // A layout allows I/O at data servers, not here (RFC 8881, 12.5.2).
            StateKind::Layout(_) => return Err(Error::BadStateid),
            StateKind::Revoked(revoked) => return Err(revoked.why.error()),
        };
        let confirmed = || state.holdings.owner(opening.owner).is_some_and(|owner| owner.confirmed);
        // Clients with sessions do not confirm their owners.
        if sender.is_unsequenced() && !confirmed() {
            return Err(Error::BadStateid);
        }
        let granted = opening.share.access & io.access == io.access;
        let opened = granted && io.is_of(&opening.user);
        let holder = Holder { client: found.client.id, state: open };
        let is_its = || found.may_change(&state, (sender, None)).is_ok();
        if !opened && !is_its() {
            return Ok(Judged::Foreign(holder));
        }
        if !granted {
            may_read_too(&it.file, holder, io.access)?;
        }
        // Another principal may have the same credentials on the server.
        if sender.is_unsequenced() && is_its() {
            found.renew(sender);
        }
        drop(state);
        Ok(Judged::Shown(Shown { bearer: found.client, opened }))
    }

    /// Checks an access without an open, for a client if one is known.
    fn check_anonymous(
        &self,
        (now, mine): (Duration, Option<ClientId>),
        (io, may): (&Io<'_>, &dyn Fn() -> bool),
        heeded: Denials,
    ) -> Result<()> {
        if heeded != Denials::None && self.is_in_grace_at(io.file.export) {
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

    /// TEST_STATEID of one stateid (RFC 8881, 18.48). Any user of the client may test it: that
    /// changes nothing, and a client may test the stateids of all its users in one request.
    ///
    /// # Errors
    /// The reason why the stateid is not valid.
    pub fn test_stateid(&self, sender: Sender<'_>, stateid: &Stateid) -> Result<()> {
        if stateid.special().is_some() {
            return Err(Error::BadStateid);
        }
        let found = self.find(&sender, stateid)?;
        found.look(&*found.client.live()?, &sender, stateid).map(|_| ())
    }

    /// FREE_STATEID (RFC 8881, 18.38) of a lock state without locks, or of a revoked state. The
    /// client is told of a revoked state until it is freed, so another user must not free it. Linux
    /// frees state as the user who had it, or as the client's own principal.
    ///
    /// # Errors
    /// The errors of an invalid stateid. [`Error::WrongCred`]: the state belongs or belonged to
    /// another principal. [`Error::LocksHeld`].
    pub fn free_stateid(&self, sender: Sender<'_>, stateid: &Stateid) -> Result<()> {
        let found = self.find(&sender, stateid)?;
        let (client, number) = (&found.client, found.number);
        let mut state = client.live()?;
        found.may_change(&state, (&sender, None))?;
        match found.look(&state, &sender, stateid) {
            Err(Error::DelegRevoked | Error::AdminRevoked) => {
                return self.free_revoked(client, (&sender.caller, &mut state), number);
            }
            looked => looked.map(drop)?,
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
            // Linux frees the stateid of each process that has ended, and uses a new owner for the
            // next.
            state.holdings.forget_idle(owner);
            drop(state);
            self.announce(wakes);
        }
        Ok(())
    }

    fn free_revoked(
        &self,
        client: &Client,
        (caller, state): (&Caller, &mut ClientState),
        number: u32,
    ) -> Result<()> {
        let revoked = state.at(number)?.what.revoked().ok_or(Error::BadStateid)?;
        let is_its = revoked.principal.is_none_or(|its| its == caller.principal);
        if !is_its && !client.is_principal(caller) {
            return Err(Error::WrongCred);
        }
        state.holdings.remove(number);
        client.note_revoked(state);
        if state.holdings.counts().revoked == 0 {
            self.record(Record::RevocationsKnown(client.recorded()));
        }
        Ok(())
    }
}

/// Checks that an open for writing may also read, because a client that writes a part of a block
/// may need the rest (RFC 8881, 9.1.2). It may not if another open denies reading.
fn may_read_too(file: &File, holder: Holder, access: u32) -> Result<()> {
    if access != Share::READ {
        return Err(Error::Openmode);
    }
    match file.state().shares.conflict(Some(holder), Share::access(access)) {
        Some(_) => Err(Error::ShareDenied),
        None => Ok(()),
    }
}
