//! Removal of states from their files, and notices to owners that can have a lock then.

mod layouts;

pub(crate) use layouts::has_access;

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{Holdings, State, StateKind, client_of_lock_owner};
use crate::file::{File, FileState, Holder};
use crate::sync::atomic::Ordering;
use crate::{
    ByteRange, Client, ClientProtocol, DelegationKind, Effect, Engine, FileKey, Offer, SessionId,
    Share,
};

pub(crate) type Wakes = Vec<(FileKey, Offer)>;

impl Engine {
    /// Removes all states of a client from their files.
    pub(crate) fn release(&self, now: Duration, client: &Arc<Client>, holdings: Holdings) {
        let mut wakes = Vec::new();
        for (number, state) in holdings.states {
            let holder = Holder { client: client.id, state: number };
            if matches!(state.what, StateKind::Layout(_)) {
                self.fence(&state.file);
            }
            self.release_state(now, holder, &state, &mut wakes);
        }
        self.announce(wakes);
    }

    /// Removes an ended state from its file, which may leave the table then. Owners whose locks
    /// become free are added to `wakes`.
    pub(crate) fn release_state(
        &self,
        now: Duration,
        holder: Holder,
        state: &State,
        wakes: &mut Wakes,
    ) {
        let mut offers = Vec::new();
        let mut file = state.file.state();
        match &state.what {
            StateKind::Open(_) => self.set_share(&mut file, holder, None),
            StateKind::Lock(locking) => {
                let owner = u64::from(holder.client.number()) << 32 | u64::from(locking.owner);
                let all = file.locks.held_by(owner).map(|(range, _)| range);
                let all = all.reduce(crate::ByteRange::hull);
                all.into_iter().for_each(|range| self.tell_unlocked(state.file.key, range));
                file.locks.forget(now, owner, &mut offers);
            }
            StateKind::Delegation(_) => {
                self.drop_delegation(&state.file, &mut file, holder);
            }
            StateKind::Layout(layout) => {
                self.forget_layout(&state.file, &mut file, (holder, layout));
            }
            StateKind::Revoked(_) => {}
        }
        drop(file);
        self.files.let_go(now, &state.file);
        wakes.extend(offers.into_iter().map(|offer| (state.file.key, offer)));
    }

    pub(crate) fn drop_session(&self, id: &SessionId) {
        if let Some(session) = self.sessions.remove(id) {
            session.channels().slots.close(self.replies(&session.client));
        }
    }

    /// Sets the share of an open, none if it ends, and counts the opens that deny access.
    pub(crate) fn set_share(&self, on_file: &mut FileState, holder: Holder, share: Option<Share>) {
        let denies = |share: Option<Share>| share.is_some_and(|share| share.deny != 0);
        let old = on_file.shares.set(holder, share);
        match (denies(old), denies(share)) {
            (false, true) => drop(self.files.denies.fetch_add(1, Ordering::AcqRel)),
            (true, false) => drop(self.files.denies.fetch_sub(1, Ordering::AcqRel)),
            _ => {}
        }
    }

    /// Removes a delegation from its file; returns its kind.
    pub(crate) fn drop_delegation(
        &self,
        file: &File,
        on_file: &mut FileState,
        holder: Holder,
    ) -> Option<DelegationKind> {
        let kind = on_file.delegations.remove(holder)?.kind;
        if kind == DelegationKind::Directory {
            self.unwatch_children(holder);
        }
        self.files.delegations.fetch_sub(1, Ordering::AcqRel);
        self.tell_undelegated(file.key);
        Some(kind)
    }

    /// Ends the notifications of children of a holder, if it has any.
    fn unwatch_children(&self, holder: Holder) {
        if self.changed.are_watched() && self.children.end(holder) {
            self.changed.unwatch();
        }
    }

    pub(crate) fn wake_waiters(&self, file: &Arc<File>, offers: Vec<Offer>) {
        if !offers.is_empty() {
            self.files.watch(file);
        }
        self.announce(offers.into_iter().map(|offer| (file.key, offer)).collect());
    }

    /// Notifies waiting owners that their locks are free. The caller must hold no lock.
    pub(crate) fn announce(&self, wakes: Wakes) {
        for (file, offer) in wakes {
            let id = self.clients.id(client_of_lock_owner(offer.owner));
            let Some(client) = self.clients.get(id) else { continue };
            if client.protocol == ClientProtocol::Setclientid {
                continue;
            }
            let state = client.state();
            let owner = state.holdings.owner(offer.owner as u32);
            let owner = owner.map(|owner| (owner.name.clone(), owner.export));
            drop(state);
            if let Some((owner, export)) = owner {
                let (file, Offer { range, kind, .. }) = (FileKey { export, ..file }, offer);
                self.effect_queue.push(Effect::NotifyLock { client, owner, file, range, kind });
            }
        }
    }

    pub(crate) fn tell_unlocked(&self, file: FileKey, range: ByteRange) {
        if self.settings.locals {
            self.unlocked.push((file, range));
        }
    }

    pub(crate) fn tell_undelegated(&self, file: FileKey) {
        if self.settings.locals {
            self.undelegated.push(file);
        }
    }
}
