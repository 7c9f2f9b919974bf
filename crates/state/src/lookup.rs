//! From a stateid to its state.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::client::ClientState;
use crate::holdings::{State, What};
use crate::{Client, Desk, Engine, Error, FileKey, Result, Stateid};

/// Who sends an operation, and when it came.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// The time.
    pub now: Duration,
    /// The client whose session it came in; none for minor version 0, where the stateid says it.
    pub client: Option<&'a Arc<Client>>,
}

impl<'a> Sender<'a> {
    /// A client, as it sends its operations.
    pub(crate) fn of(now: Duration, client: &'a Arc<Client>) -> Self {
        let has_sessions = client.desk == Desk::ExchangeId;
        Self { now, client: has_sessions.then_some(client) }
    }
}

/// Whose state a stateid names: in minor version 0 the stateid says it, later the session does.
pub type Bearer<'a> = Cow<'a, Arc<Client>>;

/// Where a state is, if there is one.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) client: Bearer<'a>,
    pub(crate) number: u32,
}

impl Engine {
    /// Whose state a stateid names. Renews the lease.
    pub(crate) fn find<'a>(&self, sender: Sender<'a>, stateid: &Stateid) -> Result<Found<'a>> {
        if let Some(client) = sender.client {
            let place = stateid.place(self.settings.boot).map_err(|_| Error::BadStateid)?;
            let (id, number) = place;
            let found = Found { client: Cow::Borrowed(client), number };
            return if client.id == id { Ok(found) } else { Err(Error::BadStateid) };
        }
        let (id, number) = stateid.place(self.settings.boot)?;
        let client = self.clients.get(id).ok_or(Error::Expired)?;
        if client.desk != Desk::Setclientid {
            // Of one with sessions, or of a host of NLM: it says it in no such operation.
            return Err(Error::BadStateid);
        }
        client.renew(sender.now);
        Ok(Found { client: Cow::Owned(client), number })
    }
}

impl ClientState {
    /// A state, if the stateid is the one it has now.
    pub(crate) fn current(
        &mut self,
        sender: Sender<'_>,
        number: u32,
        stateid: &Stateid,
    ) -> Result<&mut State> {
        let state = self.holdings.get_mut(number).ok_or(Error::BadStateid)?;
        state.check(sender, stateid)?;
        Ok(state)
    }

    /// The same, to be looked at only.
    pub(crate) fn look(
        &self,
        sender: Sender<'_>,
        number: u32,
        stateid: &Stateid,
    ) -> Result<&State> {
        let state = self.at(number)?;
        state.check(sender, stateid)?;
        Ok(state)
    }

    /// A state, whatever it is.
    pub(crate) fn at(&self, number: u32) -> Result<&State> {
        self.holdings.get(number).ok_or(Error::BadStateid)
    }

    /// A state, if the stateid is the one it has now and it is of this file.
    pub(crate) fn of(
        &self,
        sender: Sender<'_>,
        number: u32,
        (stateid, file): (&Stateid, &FileKey),
    ) -> Result<&State> {
        let state = self.look(sender, number, stateid)?;
        if state.file.key == *file { Ok(state) } else { Err(Error::BadStateid) }
    }
}

impl State {
    fn check(&self, sender: Sender<'_>, stateid: &Stateid) -> Result<()> {
        match &self.what {
            What::Open(opening) if opening.closed => Err(Error::BadStateid),
            What::Revoked => Err(Error::DelegRevoked),
            _ => check_seqid(stateid.seqid, self.seqid, sender.is_unsequenced()),
        }
    }
}

/// Holds a stateid's seqid against the one of its state; zero means whichever it is, but not in
/// minor version 0 (RFC 8881, 8.2.2).
fn check_seqid(given: u32, current: u32, unsequenced: bool) -> Result<()> {
    if given == current || (given == 0 && !unsequenced) {
        return Ok(());
    }
    // It goes from the highest number back to one: what is far ahead is behind.
    let ahead = given.wrapping_sub(current) < 1 << 31;
    Err(if ahead { Error::BadStateid } else { Error::OldStateid })
}
