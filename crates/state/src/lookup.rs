//! From a stateid to its state.

use std::sync::Arc;
use std::time::Duration;

use crate::client::ClientState;
use crate::holdings::{State, What};
use crate::{Client, Engine, Error, Result, Stateid};

/// Who sends an operation, and when it came.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// The time.
    pub now: Duration,
    /// The client whose session it came in; none for minor version 0, where the stateid says it.
    pub client: Option<&'a Arc<Client>>,
}

/// Where a state is, if there is one.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) client: Arc<Client>,
    pub(crate) number: u32,
}

impl Engine {
    /// Whose state a stateid names. Renews the lease.
    pub(crate) fn find(&self, sender: Sender<'_>, stateid: &Stateid) -> Result<Found> {
        if let Some(client) = sender.client {
            let place = stateid.place(self.settings.boot).map_err(|_| Error::BadStateid)?;
            let (id, number) = place;
            let client = Arc::clone(client);
            return if client.id == id {
                Ok(Found { client, number })
            } else {
                Err(Error::BadStateid)
            };
        }
        let (id, number) = stateid.place(self.settings.boot)?;
        let client = self.clients.get(id).ok_or(Error::Expired)?;
        client.renew(sender.now);
        Ok(Found { client, number })
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
        let unsequenced = sender.is_unsequenced();
        let state = self.holdings.get_mut(number).ok_or(Error::BadStateid)?;
        match &state.what {
            What::Open(opening) if opening.closed => return Err(Error::BadStateid),
            What::Revoked => return Err(Error::DelegRevoked),
            _ => {}
        }
        check_seqid(stateid.seqid, state.seqid, unsequenced)?;
        Ok(state)
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
