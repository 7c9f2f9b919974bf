//! Changes of opens: OPEN_CONFIRM, OPEN_DOWNGRADE, CLOSE.

use crate::client_state::OpenState;
use crate::file::Holder;
use crate::lookup::{confirmed, opening};
use crate::{At, Engine, Error, Result, Share, Stateid};

impl Engine {
    /// OPEN_CONFIRM (RFC 7530, 16.18).
    ///
    /// # Errors
    /// The errors of a stateid that is not valid for this file. [`Error::WrongCred`]: the open
    /// belongs to another principal. [`Error::BadStateid`]: its owner is already confirmed.
    pub fn open_confirm(&self, (sender, file): At<'_>, stateid: &Stateid) -> Result<Stateid> {
        let shown = (&sender, file);
        let found = self.find(&sender, stateid)?;
        let (client, number) = (&found.client, found.number);
        let mut state = client.live()?;
        let owner = opening(&found, &mut state, shown, stateid)?.owner;
        let owner = state.holdings.owner_mut(owner).ok_or(Error::BadStateid)?;
        if std::mem::replace(&mut owner.confirmed, true) {
            return Err(Error::BadStateid);
        }
        state.holdings.change(client.id, number)
    }

    /// OPEN_DOWNGRADE (RFC 8881, 18.18).
    ///
    /// # Errors
    /// The errors of an invalid stateid. [`Error::Inval`]: the file was never opened with this
    /// share.
    pub fn open_downgrade(
        &self,
        (sender, file): At<'_>,
        stateid: &Stateid,
        share: Share,
    ) -> Result<Stateid> {
        let shown = (&sender, file);
        let found = self.find(&sender, stateid)?;
        let (client, number) = (&found.client, found.number);
        let mut state = client.live()?;
        confirmed(&found, &mut state, shown, stateid)?;
        let opening = opening(&found, &mut state, shown, stateid)?;
        if !share.is_valid() || !opening.may_become(share) {
            return Err(Error::Inval);
        }
        opening.share = share;
        opening.opened = Share::within(opening.opened, share);
        let file = state.holdings.get(number).ok_or(Error::BadStateid)?.file.clone();
        let holder = Holder { client: client.id, state: number };
        self.set_share(&mut file.state(), holder, Some(share));
        state.holdings.change(client.id, number)
    }

    /// CLOSE (RFC 8881, 18.2). It frees the locks of the open, as Linux clients expect.
    ///
    /// # Errors
    /// The errors of an invalid stateid.
    pub fn close(&self, (sender, file): At<'_>, stateid: &Stateid) -> Result<Stateid> {
        let shown = (&sender, file);
        let found = self.find(&sender, stateid)?;
        let (client, number) = (&found.client, found.number);
        let mut wakes = Vec::new();
        let mut state = client.live()?;
        let owner = confirmed(&found, &mut state, shown, stateid)?;
        self.free_locks(sender.now, client, &mut state, number, &mut wakes);
        let stateid = state.holdings.change(client.id, number)?;
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
            self.end_layout_without_access(sender.now, client, (&mut state, &open.file));
        }
        drop(state);
        self.announce(wakes);
        // The reply is a stateid that is never valid (RFC 8881, 18.2.4).
        Ok(if sender.is_unsequenced() { stateid } else { Stateid::INVALID })
    }
}

impl OpenState {
    /// Returns whether an open can be downgraded to a share: the share must be the union of some
    /// shares with which it was opened.
    fn may_become(&self, share: Share) -> bool {
        let within = Share::within(self.opened, share);
        let seen = Share::united(within);
        seen == share
    }
}

impl Share {
    /// Returns the bit of this share in a set of shares.
    pub(crate) const fn bit(self) -> u16 {
        1 << (self.deny << 2 | self.access)
    }

    /// Returns the shares of a set that ask for nothing beyond `share`.
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
