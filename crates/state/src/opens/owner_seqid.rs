//! The order of an owner's operations in minor version 0 (RFC 7530, 9.1.7). Each operation has a
//! seqid, and the last reply is kept for a retry.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, Owner, OwnerKind, StateKind};
use crate::file::Holder;
use crate::{At, Caller, Client, Engine, Error, OwnerReply, Result, Stateid};

/// The answer to an owner that begins an operation.
#[derive(Debug)]
pub enum SeqidCheck {
    /// The operation is new.
    New(OwnerTurn),
    /// The operation repeats the last one, which had this reply.
    Again(OwnerReply),
}

/// An owner whose operation is under way. If this is dropped without a call of its methods, the
/// operation does not count.
#[derive(Debug)]
pub struct OwnerTurn {
    client: Arc<Client>,
    owner: u32,
    seqid: u32,
    open: bool,
}

/// An owner whose operation is done, but whose reply may not be sent yet. The owner's seqid has
/// advanced; a retry is answered once the reply is kept. If this is dropped without a reply, the
/// operation does not count.
#[derive(Debug)]
pub struct OwnerAnswer {
    client: Arc<Client>,
    owner: u32,
    seqid: u32,
    open: bool,
}

impl OwnerTurn {
    /// Returns the client of the owner.
    #[must_use]
    pub const fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Ends the operation and keeps its reply: the result, from its status on, and the current
    /// filehandle if the operation changed it. Failures that do not advance the seqid must drop the
    /// turn instead: `STALE_CLIENTID`, `STALE_STATEID`, `BAD_STATEID`, `BAD_SEQID`, `BADXDR`,
    /// `RESOURCE`, `NOFILEHANDLE`, `MOVED` (RFC 7530, 9.1.7).
    pub fn answered(self, result: &[u8], handle: Option<&[u8]>) {
        self.done().told(result, handle);
    }

    /// Ends the operation. Its reply must still wait for a barrier, and is kept later.
    #[must_use]
    pub fn done(mut self) -> OwnerAnswer {
        let (owner, seqid) = (self.owner, self.seqid);
        self.end(|owner| (owner.seqid, owner.unanswered) = (seqid, true));
        OwnerAnswer { client: Arc::clone(&self.client), owner, seqid, open: true }
    }

    fn end(&mut self, count: impl FnOnce(&mut Owner)) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let mut state = self.client.state();
        let Some(owner) = state.holdings.owner_mut(self.owner) else { return };
        owner.busy = false;
        count(owner);
    }
}

impl Drop for OwnerTurn {
    fn drop(&mut self) {
        self.end(|_| {});
    }
}

impl OwnerAnswer {
    /// Keeps the reply, as [`OwnerTurn::answered`] does.
    pub fn told(mut self, result: &[u8], handle: Option<&[u8]>) {
        let reply = OwnerReply { result: result.into(), handle: handle.map(Into::into) };
        self.end(|owner| owner.last = Some(reply));
    }

    /// Applies `settle` to the owner, unless a later operation of the owner has begun: then no
    /// retry of this one can come.
    fn end(&mut self, settle: impl FnOnce(&mut Owner)) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let mut state = self.client.state();
        let owner = state.holdings.owner_mut(self.owner);
        if let Some(owner) = owner.filter(|owner| owner.unanswered && owner.seqid == self.seqid) {
            owner.unanswered = false;
            settle(owner);
        }
    }
}

impl Drop for OwnerAnswer {
    fn drop(&mut self) {
        let before = self.seqid.wrapping_sub(1);
        self.end(|owner| owner.seqid = before);
    }
}

impl Engine {
    /// Begins an OPEN of an open-owner in minor version 0. An owner that was never confirmed may
    /// begin with a new seqid; its earlier opens are then forgotten. Another user of the client
    /// cannot begin anew for an owner that has opens, because that would end them.
    ///
    /// # Errors
    /// [`Error::BadSeqid`]. [`Error::Delay`]: another operation of the owner is under way.
    pub fn open_turn(
        &self,
        (now, caller): (Duration, Caller),
        client: &Arc<Client>,
        name: &[u8],
        seqid: u32,
    ) -> Result<SeqidCheck> {
        let mut state = client.live()?;
        let mut known = state.holdings.find_owner(OwnerKind::Open, name);
        let is_client = client.is_principal(&caller);
        let may_restart = |state: &ClientState, number| {
            let owner = state.holdings.owner(number);
            is_client || owner.is_some_and(|it| it.states == 0 || it.principal == caller.principal)
        };
        let restarts =
            |number: &mut u32| restarts(&state, *number, seqid) && may_restart(&state, *number);
        if let Some(number) = known.take_if(restarts) {
            self.drop_owner(now, client, &mut state, number);
        }
        let number = match known {
            Some(number) => number,
            None => {
                let owner = Owner::new(now, OwnerKind::Open, (name, caller.principal), seqid);
                state.holdings.add_owner(&self.settings.limits, owner)?
            }
        };
        self.take_turn(now, client, &mut state, (number, seqid))
    }

    /// Begins an operation of minor version 0 that names an open or lock state: CLOSE,
    /// OPEN_CONFIRM, OPEN_DOWNGRADE, LOCK, LOCKU. The state must belong to this file and this
    /// principal, so that a guessed stateid cannot advance a seqid.
    ///
    /// # Errors
    /// The errors of an invalid stateid; [`Error::BadSeqid`], [`Error::Delay`].
    pub fn stateid_turn(
        &self,
        (sender, file): At<'_>,
        stateid: &Stateid,
        seqid: u32,
    ) -> Result<SeqidCheck> {
        let found = self.find(&sender, stateid)?;
        let client = &found.client;
        let mut state = client.live()?;
        let owner = state.at(found.number)?.owner().ok_or(Error::BadStateid)?;
        found.may_change(&state, (&sender, Some(file)))?;
        self.take_turn(sender.now, client, &mut state, (owner, seqid))
    }

    fn drop_owner(&self, now: Duration, client: &Arc<Client>, state: &mut ClientState, owner: u32) {
        let of_owner =
            |what: &StateKind| matches!(what, StateKind::Open(opening) if opening.owner == owner);
        let opens = state.holdings.states().filter(|(_, state)| of_owner(&state.what));
        let opens: Vec<u32> = opens.map(|(number, _)| number).collect();
        for number in opens {
            if let Some(open) = state.holdings.remove(number) {
                // The open was not confirmed, so it has no locks.
                let holder = Holder { client: client.id, state: number };
                self.release_state(now, holder, &open, &mut Vec::new());
            }
        }
        state.holdings.remove_owner(owner);
    }

    fn take_turn(
        &self,
        now: Duration,
        client: &Arc<Client>,
        state: &mut ClientState,
        (number, seqid): (u32, u32),
    ) -> Result<SeqidCheck> {
        let owner = state.holdings.owner_mut(number).ok_or(Error::BadStateid)?;
        if let Some(reply) = owner.begin(now, seqid)? {
            self.counters.replies_again.add(1);
            return Ok(SeqidCheck::Again(reply));
        }
        let closed = owner.closed.take();
        closed.and_then(|closed| state.holdings.remove(closed));
        Ok(SeqidCheck::New(OwnerTurn {
            client: Arc::clone(client),
            owner: number,
            seqid,
            open: true,
        }))
    }
}

/// Returns whether an OPEN makes an unconfirmed owner begin with a new seqid.
fn restarts(state: &ClientState, owner: u32, seqid: u32) -> bool {
    let owner = state.holdings.owner(owner);
    owner.is_some_and(|owner| {
        let again = owner.seqid == seqid && owner.last.is_some();
        !owner.confirmed && !owner.busy && !owner.unanswered && !again
    })
}
