//! What becomes of opens: OPEN_CONFIRM, OPEN_DOWNGRADE, CLOSE.

use crate::client::ClientState;
use crate::file::{Holder, Share};
use crate::holdings::{Opening, What};
use crate::lookup::Found;
use crate::{Client, Engine, Error, Result, Sender, Stateid};

impl Engine {
    /// OPEN_CONFIRM (RFC 7530, 16.18).
    ///
    /// # Errors
    /// As a stateid is refused; [`Error::BadStateid`]: its owner was confirmed before.
    pub fn open_confirm(&self, sender: Sender<'_>, stateid: &Stateid) -> Result<Stateid> {
        let Found { client, number } = self.find(sender, stateid)?;
        let mut state = client.live()?;
        let owner = opening(&mut state, sender, number, stateid)?.owner;
        let owner = state.holdings.owner_mut(owner).ok_or(Error::BadStateid)?;
        if std::mem::replace(&mut owner.confirmed, true) {
            return Err(Error::BadStateid);
        }
        changed(&mut state, &client, number)
    }

    /// OPEN_DOWNGRADE (RFC 8881, 18.18).
    ///
    /// # Errors
    /// As a stateid is refused; [`Error::Inval`]: the file was never opened like this.
    pub fn open_downgrade(
        &self,
        sender: Sender<'_>,
        stateid: &Stateid,
        share: Share,
    ) -> Result<Stateid> {
        let Found { client, number } = self.find(sender, stateid)?;
        let mut state = client.live()?;
        confirmed(&mut state, sender, number, stateid)?;
        let opening = opening(&mut state, sender, number, stateid)?;
        if !share.is_valid() || !opening.may_become(share) {
            return Err(Error::Inval);
        }
        opening.share = share;
        opening.opened = Share::within(opening.opened, share);
        let file = state.holdings.get(number).ok_or(Error::BadStateid)?.file.clone();
        let holder = Holder { client: client.id, state: number };
        self.set_share(&mut file.state(), holder, Some(share));
        changed(&mut state, &client, number)
    }

    /// CLOSE (RFC 8881, 18.2). Locks under the open are freed with it, as Linux clients expect.
    ///
    /// # Errors
    /// As a stateid is refused.
    pub fn close(&self, sender: Sender<'_>, stateid: &Stateid) -> Result<Stateid> {
        let Found { client, number } = self.find(sender, stateid)?;
        let mut wakes = Vec::new();
        let mut state = client.live()?;
        confirmed(&mut state, sender, number, stateid)?;
        let owner = opening(&mut state, sender, number, stateid)?.owner;
        self.free_locks(sender.now, &client, &mut state, number, &mut wakes);
        let stateid = changed(&mut state, &client, number)?;
        let holder = Holder { client: client.id, state: number };
        let open = if sender.is_unsequenced() {
            if let Some(owner) = state.holdings.owner_mut(owner) {
                owner.closed = Some(number);
            }
            state.holdings.close(number)
        } else {
            let open = state.holdings.remove(number);
            state.holdings.forget_idle(owner);
            open
        };
        if let Some(open) = open {
            self.release_state(sender.now, holder, &open, &mut wakes);
        }
        drop(state);
        self.announce(wakes);
        // The state is gone: what is told is a stateid that nobody may use (RFC 8881, 18.2.4).
        Ok(if sender.is_unsequenced() { stateid } else { Stateid::INVALID })
    }
}

impl Opening {
    /// Whether an open can be downgraded to a share: it must be what some of its OPENs together
    /// were for.
    fn may_become(&self, share: Share) -> bool {
        let within = Share::within(self.opened, share);
        let seen = Share::united(within);
        seen == share
    }
}

impl Share {
    /// Its bit among the shares an open was opened with.
    pub(crate) const fn bit(self) -> u16 {
        1 << (self.deny << 2 | self.access)
    }

    /// Those of a set of shares that ask for nothing but what `share` does.
    fn within(set: u16, share: Self) -> u16 {
        let fits = |one: &Self| one.and(share) == share;
        Self::of(set).filter(fits).fold(0, |kept, one| kept | one.bit())
    }

    fn united(set: u16) -> Self {
        Self::of(set).fold(Self::default(), Self::and)
    }

    fn of(set: u16) -> impl Iterator<Item = Self> {
        let share = |number: u32| Self { access: number & 3, deny: number >> 2 };
        (0..16).map(share).filter(move |share| set & share.bit() != 0)
    }
}

fn opening<'a>(
    state: &'a mut ClientState,
    sender: Sender<'_>,
    number: u32,
    stateid: &Stateid,
) -> Result<&'a mut Opening> {
    match &mut state.current(sender, number, stateid)?.what {
        What::Open(opening) => Ok(opening),
        _ => Err(Error::BadStateid),
    }
}

/// Refuses an open whose owner has not confirmed it.
pub(crate) fn confirmed(
    state: &mut ClientState,
    sender: Sender<'_>,
    number: u32,
    stateid: &Stateid,
) -> Result<()> {
    let owner = opening(state, sender, number, stateid)?.owner;
    let confirmed = state.holdings.owner(owner).is_some_and(|owner| owner.confirmed);
    if confirmed { Ok(()) } else { Err(Error::BadStateid) }
}

fn changed(state: &mut ClientState, client: &Client, number: u32) -> Result<Stateid> {
    let open = state.holdings.get_mut(number).ok_or(Error::BadStateid)?;
    Ok(open.change(client, number))
}
