//! Open-owners and lock-owners, and the order of their operations in minor version 0 (RFC 7530,
//! 9.1.7): each has a number, and the last answer is kept for a retry.

use std::sync::Arc;
use std::time::Duration;

use crate::client::ClientState;
use crate::client_state::What;
use crate::file::Holder;
use crate::limits::OWNER_BYTES;
use crate::lookup::At;
use crate::{Caller, Client, Desk, Engine, Error, Principal, Result, Sender, Stateid};

/// What an owner owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OwnerKind {
    /// Opens.
    Open,
    /// Locks.
    Lock,
}

/// An open-owner or lock-owner of a client.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) kind: OwnerKind,
    pub(crate) name: Box<[u8]>,
    /// The principal that uses it.
    pub(crate) principal: Principal,
    /// How many states it has.
    pub(crate) states: u32,
    /// By which export it asked for a lock last.
    pub(crate) export: u32,
    /// Whether OPEN_CONFIRM has been said, or need not be.
    pub(crate) confirmed: bool,
    /// The number of its last operation.
    seqid: u32,
    busy: bool,
    /// Whether the last operation is done and may not be answered yet.
    owed: bool,
    last: Option<OwnerReply>,
    /// The state whose CLOSE was its last operation.
    pub(crate) closed: Option<u32>,
    used: Duration,
}

/// What an owner's last operation was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerReply {
    /// The operation's result, from its status on.
    pub result: Arc<[u8]>,
    /// The current file handle it left, if it left another.
    pub handle: Option<Arc<[u8]>>,
}

/// What an owner says to an operation.
#[derive(Debug)]
pub enum Turn {
    /// It is its turn.
    New(OwnerTurn),
    /// It was done, and this was the answer.
    Again(OwnerReply),
}

/// An owner while an operation of it is worked on. Dropped without an end, the operation was none.
#[derive(Debug)]
pub struct OwnerTurn {
    client: Arc<Client>,
    owner: u32,
    seqid: u32,
    open: bool,
}

/// An owner whose operation is done, until its answer may be said: the owner counts on, but is
/// not answered again before. Dropped without an answer, the operation does not count.
#[derive(Debug)]
pub struct OwnerAnswer {
    client: Arc<Client>,
    owner: u32,
    seqid: u32,
    open: bool,
}

impl Owner {
    pub(crate) fn new(
        now: Duration,
        kind: OwnerKind,
        (name, principal): (&[u8], Principal),
        first: u32,
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            principal,
            states: 0,
            export: 0,
            confirmed: kind == OwnerKind::Lock,
            seqid: first.wrapping_sub(1),
            busy: false,
            owed: false,
            last: None,
            closed: None,
            used: now,
        }
    }

    /// An owner of minor version 1, whose operations the session keeps in order.
    pub(crate) fn sequenced(now: Duration, kind: OwnerKind, named: (&[u8], Principal)) -> Self {
        Self { confirmed: true, ..Self::new(now, kind, named, 1) }
    }

    /// How much memory it takes.
    pub(crate) const fn bytes(&self) -> usize {
        OWNER_BYTES + 2 * self.name.len()
    }

    /// It has asked for something, though it may not have got it.
    pub(crate) const fn seen(&mut self, now: Duration) {
        self.used = now;
    }

    /// Whether this is the next number.
    pub(crate) const fn is_next(&self, seqid: u32) -> bool {
        seqid == self.seqid.wrapping_add(1)
    }

    /// Counts an operation that was another owner's turn, too: the first LOCK of a lock-owner.
    pub(crate) const fn advance(&mut self, seqid: u32) {
        self.seqid = seqid;
    }

    /// Whether it has nothing, and has had nothing for so long that nothing is asked again.
    pub(crate) fn is_stale(&self, before: Duration) -> bool {
        self.states == 0 && !self.busy && self.used < before
    }

    fn begin(&mut self, now: Duration, seqid: u32) -> Result<Option<OwnerReply>> {
        if self.busy {
            return Err(Error::Delay);
        }
        self.used = now;
        if self.is_next(seqid) {
            self.busy = true;
            return Ok(None);
        }
        if self.owed {
            return Err(Error::Delay);
        }
        let last = self.last.clone().filter(|_| seqid == self.seqid);
        last.map(Some).ok_or(Error::BadSeqid)
    }
}

impl OwnerTurn {
    /// Whose turn it is.
    #[must_use]
    pub const fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Ends the operation: its result, from its status on, and the current file handle if it is
    /// another now. Not for failures after which the owner does not count on (`STALE_CLIENTID`,
    /// `STALE_STATEID`, `BAD_STATEID`, `BAD_SEQID`, `BADXDR`, `RESOURCE`, `NOFILEHANDLE`, `MOVED`;
    /// RFC 7530, 9.1.7): there the turn is dropped.
    pub fn answered(self, result: &[u8], handle: Option<&[u8]>) {
        self.done().told(result, handle);
    }

    /// Ends the operation, whose answer is not true yet: a barrier is to be waited for.
    #[must_use]
    pub fn done(mut self) -> OwnerAnswer {
        let (owner, seqid) = (self.owner, self.seqid);
        self.end(|owner| (owner.seqid, owner.owed) = (seqid, true));
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
    /// Keeps the answer, as [`OwnerTurn::answered`] does.
    pub fn told(mut self, result: &[u8], handle: Option<&[u8]>) {
        let reply = OwnerReply { result: result.into(), handle: handle.map(Into::into) };
        self.end(|owner| owner.last = Some(reply));
    }

    /// The owner may have counted on meanwhile: then nobody asks for this answer any more.
    fn end(&mut self, settle: impl FnOnce(&mut Owner)) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let mut state = self.client.state();
        let owner = state.holdings.owner_mut(self.owner);
        if let Some(owner) = owner.filter(|owner| owner.owed && owner.seqid == self.seqid) {
            owner.owed = false;
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
    /// The turn of an open-owner for an OPEN of minor version 0. An owner that was never confirmed
    /// may begin anew: what it has opened is gone then.
    ///
    /// # Errors
    /// [`Error::BadSeqid`]; [`Error::Delay`]: another operation of the owner is worked on.
    pub fn open_turn(
        &self,
        (now, caller): (Duration, Caller),
        client: &Arc<Client>,
        name: &[u8],
        seqid: u32,
    ) -> Result<Turn> {
        let mut state = client.live()?;
        let mut known = state.holdings.find_owner(OwnerKind::Open, name);
        if let Some(number) = known.take_if(|number| restarts(&state, *number, seqid)) {
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

    /// The turn of the owner of an open or lock state, for an operation of minor version 0 that
    /// names it: CLOSE, OPEN_CONFIRM, OPEN_DOWNGRADE, LOCK, LOCKU. A stateid that was guessed takes
    /// no turn: the state must be of this file and this principal.
    ///
    /// # Errors
    /// As a stateid is refused; [`Error::BadSeqid`], [`Error::Delay`].
    pub fn stateid_turn(
        &self,
        (sender, file): At<'_>,
        stateid: &Stateid,
        seqid: u32,
    ) -> Result<Turn> {
        let found = self.find(sender, stateid)?;
        let client = &found.client;
        let mut state = client.live()?;
        let owner = state.at(found.number)?.owner().ok_or(Error::BadStateid)?;
        found.may_change(&state, (sender, Some(file)))?;
        self.take_turn(sender.now, client, &mut state, (owner, seqid))
    }

    fn drop_owner(&self, now: Duration, client: &Arc<Client>, state: &mut ClientState, owner: u32) {
        let of_owner = |what: &What| matches!(what, What::Open(opening) if opening.owner == owner);
        let opens = state.holdings.states().filter(|(_, state)| of_owner(&state.what));
        let opens: Vec<u32> = opens.map(|(number, _)| number).collect();
        for number in opens {
            if let Some(open) = state.holdings.remove(number) {
                // Nothing was ever locked under it: it was not confirmed.
                let holder = Holder { client: client.id, state: number };
                self.release_state(now, holder, &open, &mut Vec::new());
            }
        }
        state.holdings.remove_owner(owner);
    }

    /// Forgets owners that have had nothing for a lease.
    pub(crate) fn reap_owners(&self, now: Duration, client: &Client) {
        let Some(before) = now.checked_sub(self.settings.lease) else { return };
        let mut state = client.state();
        let stale = state.holdings.owners().filter(|(_, owner)| owner.is_stale(before));
        let stale: Vec<u32> = stale.map(|(number, _)| number).collect();
        for number in stale {
            let closed = state.holdings.remove_owner(number).and_then(|owner| owner.closed);
            closed.and_then(|closed| state.holdings.remove(closed));
        }
    }

    fn take_turn(
        &self,
        now: Duration,
        client: &Arc<Client>,
        state: &mut ClientState,
        (number, seqid): (u32, u32),
    ) -> Result<Turn> {
        let owner = state.holdings.owner_mut(number).ok_or(Error::BadStateid)?;
        if let Some(reply) = owner.begin(now, seqid)? {
            self.tally.replies_again.add(1);
            return Ok(Turn::Again(reply));
        }
        let closed = owner.closed.take();
        closed.and_then(|closed| state.holdings.remove(closed));
        Ok(Turn::New(OwnerTurn { client: Arc::clone(client), owner: number, seqid, open: true }))
    }
}

/// Whether an OPEN makes an owner begin anew.
fn restarts(state: &ClientState, owner: u32, seqid: u32) -> bool {
    let owner = state.holdings.owner(owner);
    owner.is_some_and(|owner| {
        let again = owner.seqid == seqid && owner.last.is_some();
        !owner.confirmed && !owner.busy && !owner.owed && !again
    })
}

impl ClientState {
    /// Whether a caller acts under the name of an owner that is another principal's: neither its
    /// own nor, if it is the client itself, one of the client's.
    pub(crate) fn borrows(&self, client: &Client, caller: Caller, owner: u32) -> bool {
        let known = self.holdings.owner(owner).map(|owner| owner.principal);
        known.is_some_and(|known| known != caller.principal) && !client.is_principal(caller)
    }
}

impl Sender<'_> {
    /// Whether stateids are of minor version 0.
    pub(crate) fn is_unsequenced(&self) -> bool {
        self.client.is_none_or(|client| client.desk == Desk::Setclientid)
    }
}
