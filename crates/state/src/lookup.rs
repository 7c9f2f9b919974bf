//! Lookup of the state that a stateid names.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, OpenState, OwnerKind, State, StateKind};
use crate::file::File;
use crate::{
    Caller, Client, ClientProtocol, Engine, Error, FileKey, Principal, Result, StateName, Stateid,
};

/// The sender of an operation, and the time of the operation.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// The time.
    pub now: Duration,
    /// The client of the session; none in minor version 0, where the stateid names the client.
    pub client: Option<&'a Arc<Client>>,
    /// The principal and the origin of the call.
    pub caller: Caller,
}

impl<'a> Sender<'a> {
    /// Returns a client as the sender, with its own principal.
    #[must_use]
    pub fn of(now: Duration, client: &'a Arc<Client>) -> Self {
        let has_sessions = client.protocol == ClientProtocol::ExchangeId;
        Self { now, client: has_sessions.then_some(client), caller: client.caller() }
    }
}

/// The sender of a stateid, and the file of the current filehandle.
pub type At<'a> = (Sender<'a>, &'a FileKey);

/// The client of the state that a stateid names. In minor version 0 the stateid names it, later the
/// session does.
pub type Bearer<'a> = Cow<'a, Arc<Client>>;

/// The client and the number of a state that may exist.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) client: Bearer<'a>,
    pub(crate) number: u32,
}

impl Engine {
    /// Finds the client of a stateid.
    pub(crate) fn find<'a>(&self, sender: &Sender<'a>, stateid: &Stateid) -> Result<Found<'a>> {
        let name @ StateName { client: id, number } = stateid.name()?;
        if let Some(client) = sender.client {
            let number = client.number_of(name).ok_or(Error::BadStateid)?;
            return Ok(Found { client: Cow::Borrowed(client), number });
        }
        let Some(client) = self.clients.get(id) else {
            let gave_out = self.clients.gave_out(id);
            return Err(if gave_out { Error::Expired } else { Error::StaleStateid });
        };
        if client.protocol != ClientProtocol::Setclientid {
            // Clients with sessions and hosts of NLM are not named by stateids.
            return Err(Error::BadStateid);
        }
        client.admit(&sender.caller)?;
        Ok(Found { client: Cow::Owned(client), number })
    }
}

impl Found<'_> {
    /// Returns the state if the stateid is current. The caller and the file are not compared, so no
    /// lease is renewed.
    pub(crate) fn look<'s>(
        &self,
        state: &'s ClientState,
        sender: &Sender<'_>,
        stateid: &Stateid,
    ) -> Result<&'s State> {
        let it = state.at(self.number)?;
        it.check(sender, stateid)?;
        Ok(it)
    }

    /// Renews the lease of a client of minor version 0. The address of the caller, its principal
    /// and the file must have been compared before.
    pub(crate) fn renew(&self, sender: &Sender<'_>) {
        self.client.renew_unsequenced(sender.now);
    }

    /// Returns the state if it belongs to this file, the stateid is current, and the caller may
    /// change it: the caller is the principal of the state, or the client itself.
    pub(crate) fn current<'s>(
        &self,
        state: &'s mut ClientState,
        (sender, file): (&Sender<'_>, &FileKey),
        stateid: &Stateid,
    ) -> Result<&'s mut State> {
        if !self.client.is_principal(&sender.caller) {
            self.may_change(state, (sender, Some(file)))?;
        }
        let it = state.holdings.get_mut(self.number).ok_or(Error::BadStateid)?;
        if it.file.key != *file {
            return Err(Error::BadStateid);
        }
        it.check(sender, stateid)?;
        self.renew(sender);
        Ok(it)
    }

    /// Checks that the caller may change the state, and that the state belongs to the file, if one
    /// is given.
    ///
    /// # Errors
    /// [`Error::BadStateid`]: the state belongs to another file. [`Error::WrongCred`].
    pub(crate) fn may_change(
        &self,
        state: &ClientState,
        (sender, file): (&Sender<'_>, Option<&FileKey>),
    ) -> Result<()> {
        let it = state.at(self.number)?;
        if file.is_some_and(|file| it.file.key != *file) {
            return Err(Error::BadStateid);
        }
        let may = self.client.is_principal(&sender.caller)
            || state.holdings.is_of(it, sender.caller.principal);
        if may { Ok(()) } else { Err(Error::WrongCred) }
    }
}

/// Compares a stateid's seqid with that of its state. Zero stands for the current seqid, but not in
/// minor version 0 (RFC 8881, 8.2.2).
fn check_seqid(given: u32, current: u32, unsequenced: bool) -> Result<()> {
    if given == current || (given == 0 && !unsequenced) {
        return Ok(());
    }
    // The seqid wraps from the highest value to one, so a seqid that is far ahead counts as old.
    let ahead = given.wrapping_sub(current) < 1 << 31;
    Err(if ahead { Error::BadStateid } else { Error::OldStateid })
}

impl State {
    /// Checks that a stateid is current.
    pub(crate) fn check(&self, sender: &Sender<'_>, stateid: &Stateid) -> Result<()> {
        match &self.what {
            StateKind::Open(opening) if opening.closed => Err(Error::BadStateid),
            StateKind::Revoked(revoked) => Err(revoked.why.error()),
            _ => check_seqid(stateid.seqid, self.seqid, sender.is_unsequenced()),
        }
    }
}

impl Sender<'_> {
    /// Returns whether the stateid belongs to a client of minor version 0, or to none that is
    /// known.
    pub(crate) fn is_unsequenced(&self) -> bool {
        self.client.is_none_or(|client| client.protocol == ClientProtocol::Setclientid)
    }
}

impl ClientState {
    /// Returns whether a caller uses an owner that belongs to another principal. The client itself
    /// may use all owners of its principals.
    pub(crate) fn borrows(&self, client: &Client, caller: &Caller, owner: u32) -> bool {
        let known = self.holdings.owner(owner).map(|owner| owner.principal);
        known.is_some_and(|known| known != caller.principal) && !client.is_principal(caller)
    }
}

/// Returns whether a principal has an open or a delegation of a file through this client.
pub(crate) fn has_opened(
    state: &ClientState,
    (client, file): (&Client, &File),
    principal: Principal,
) -> bool {
    let on_file = file.state();
    let delegation = on_file.delegations.of(client.id).map(|holder| holder.state);
    let mut numbers = on_file.shares.opens_of(client.id).chain(delegation);
    numbers.any(|number| {
        state.holdings.get(number).is_some_and(|it| state.holdings.is_of(it, principal))
    })
}

/// Forgets an open-owner that was created for an OPEN that failed. In minor version 0 the owner
/// stays, since its seqid counts.
pub(crate) fn forget_opener(client: &Client, owner: &[u8]) {
    let mut state = client.state();
    let owner = state.holdings.find_owner(OwnerKind::Open, owner);
    if let Some(owner) = owner
        && client.protocol != ClientProtocol::Setclientid
    {
        state.holdings.forget_idle(owner);
    }
}

pub(crate) fn opening<'a>(
    found: &Found<'_>,
    state: &'a mut ClientState,
    shown: (&Sender<'_>, &FileKey),
    stateid: &Stateid,
) -> Result<&'a mut OpenState> {
    match &mut found.current(state, shown, stateid)?.what {
        StateKind::Open(opening) => Ok(opening),
        _ => Err(Error::BadStateid),
    }
}

/// Returns the owner of an open; fails if the open is not confirmed.
pub(crate) fn confirmed(
    found: &Found<'_>,
    state: &mut ClientState,
    shown: (&Sender<'_>, &FileKey),
    stateid: &Stateid,
) -> Result<u32> {
    let owner = opening(found, state, shown, stateid)?.owner;
    let confirmed = state.holdings.owner(owner).is_some_and(|owner| owner.confirmed);
    if confirmed { Ok(owner) } else { Err(Error::BadStateid) }
}
