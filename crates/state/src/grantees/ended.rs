//! The end of state whose right has ended (RFC 8881, 10.2.1 and 18.46.3).

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, LockState, State, StateKind, client_of_lock_owner};
use crate::file::{File, Holder, share_of};
use crate::locks::other_lock;
use crate::release::Wakes;
use crate::{
    Client, ClientProtocol, DelegationKind, Effect, Engine, FileKey, Grantee, Offer, Record,
    Revocation, Share,
};

/// The access to a file that grants allow now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GrantedAccess {
    /// The data may be read.
    pub read: bool,
    /// The file may be executed, for which clients open it for reading.
    pub execute: bool,
    /// The data may be changed.
    pub write: bool,
}

impl GrantedAccess {
    /// All access.
    pub const ALL: Self = Self { read: true, execute: true, write: true };

    /// Returns whether an open or a delegation needs no more than this access.
    fn suffices(self, what: &StateKind) -> bool {
        match what {
            StateKind::Open(opening) => {
                let access = opening.share.access;
                (access & Share::READ == 0 || self.read || self.execute)
                    && (access & Share::WRITE == 0 || self.write)
            }
            // A client with a write delegation also reads without asking.
            StateKind::Delegation(delegating) => {
                self.read && (delegating.kind != DelegationKind::Write || self.write)
            }
            // Locks and layouts end with the opens that they need.
            StateKind::Lock(_) | StateKind::Layout(_) | StateKind::Revoked(_) => true,
        }
    }
}

/// States of a client that end, and what follows from that for others.
struct EndingStates<'a> {
    now: Duration,
    client: &'a Arc<Client>,
    file: &'a Arc<File>,
    ended: usize,
    wakes: Wakes,
    recalls: Vec<Effect>,
}

impl Engine {
    /// Takes from a client what it holds of a file by the grants of `grantee` and what needs more
    /// than the access that these grants allow now: opens with their locks, and delegations. Takes
    /// its layout, too, if that needs an access for which it has no open or delegation then. Its
    /// owners that wait for a lock which no open of the client allows any more leave the queue.
    /// Others can have the file at once. Returns the number of opens, locks and delegations that
    /// have ended.
    ///
    /// A client with sessions is told by `SEQ4_STATUS_ADMIN_STATE_REVOKED`, for a delegation also
    /// by `SEQ4_STATUS_RECALLABLE_STATE_REVOKED`, until it has freed the stateids. It is answered
    /// `ADMIN_REVOKED`. A client of minor version 0 is answered that, too, but for operations with
    /// a seqid, which get `BAD_STATEID`. A CB_RECALL of a delegation makes both look at once.
    pub fn end_rights(
        &self,
        now: Duration,
        client: &Arc<Client>,
        (key, grantee): (&FileKey, &Grantee),
        allowed: GrantedAccess,
    ) -> usize {
        let Some(file) = self.files.get(key) else { return 0 };
        let mut state = client.state();
        let (opens, delegations) = beyond(&state, (client, &file), (grantee, allowed));
        let (wakes, recalls) = (Vec::new(), Vec::new());
        let mut ending = EndingStates { now, client, file: &file, ended: 0, wakes, recalls };
        self.end_waits(&state, &mut ending, &opens);
        opens.iter().for_each(|open| self.end_open(&mut state, &mut ending, *open));
        delegations.iter().for_each(|it| self.end_delegation(&mut state, &mut ending, *it));
        let EndingStates { ended, wakes, recalls, .. } = ending;
        // A layout for writing outlives the downgrade of its open, which then loses nothing.
        if ended > 0 || allowed != GrantedAccess::ALL {
            self.take_layout_without_right(now, client, (&mut state, &file));
        }
        if ended > 0 {
            client.untold();
            client.note_revoked(&state);
            self.record(Record::Revoked(client.recorded(), file.key));
            self.counters.rights_ended.add(ended);
        }
        drop(state);
        self.announce(wakes);
        recalls.into_iter().for_each(|recall| self.effect_queue.push(recall));
        ended
    }

    /// Removes the client's owners from the queue that wait for a lock which its other opens do not
    /// allow. It comes before the opens end, or these owners would be offered their locks.
    fn end_waits(&self, state: &ClientState, ending: &mut EndingStates<'_>, opens: &[u32]) {
        if opens.is_empty() {
            return;
        }
        let (client, mut offers) = (ending.client, Vec::new());
        let mut on_file = ending.file.state();
        let left = on_file.shares.opens_of(client.id).filter(|open| !opens.contains(open));
        let left = left.filter_map(|open| state.holdings.opening(open).ok());
        let left = left.fold(0, |access, opening| access | opening.share.access);
        let ends = |wish: &Offer| {
            client_of_lock_owner(wish.owner) == client.id.number()
                && share_of(wish.kind).access & left == 0
        };
        on_file.locks.withdraw(ending.now, ends, &mut offers);
        drop(on_file);
        let key = ending.file.key;
        ending.wakes.extend(offers.into_iter().map(|offer| (key, offer)));
    }

    fn end_open(&self, state: &mut ClientState, ending: &mut EndingStates<'_>, open: u32) {
        for lock in state.holdings.locks_under(open) {
            self.end_locks(state, ending, lock);
        }
        self.end_state(state, ending, (open, Revocation::RightEnded));
    }

    /// Ends the locks of an owner in the file. The owner has one set of locks there, even if it
    /// locks through several opens, so that all its lock stateids end together.
    fn end_locks(&self, state: &mut ClientState, ending: &mut EndingStates<'_>, lock: u32) {
        let Some(StateKind::Lock(LockState { owner, .. })) =
            state.holdings.get(lock).map(|state| state.what.clone())
        else {
            return;
        };
        self.end_state(state, ending, (lock, Revocation::RightEnded));
        while let Some(other) = other_lock(state, ending.client, (ending.file, owner)) {
            self.end_state(state, ending, (other, Revocation::RightEnded));
        }
    }

    fn end_delegation(&self, state: &mut ClientState, ending: &mut EndingStates<'_>, number: u32) {
        let holder = Holder { client: ending.client.id, state: number };
        let mut on_file = ending.file.state();
        let stateid = on_file.delegations.get_mut(holder).map(|delegated| delegated.stateid);
        drop(on_file);
        self.end_state(state, ending, (number, Revocation::DelegationRightEnded));
        self.counters.revoked.add(1);
        // A client that does not use the file would go on from its cache until it renews its lease.
        if let Some(stateid) = stateid.filter(|_| ending.client.has_callbacks()) {
            let (client, file) = (Arc::clone(ending.client), ending.file.key);
            ending.recalls.push(Effect::Recall { client, stateid, file, truncate: false });
        }
    }

    fn end_state(
        &self,
        state: &mut ClientState,
        ending: &mut EndingStates<'_>,
        (number, why): (u32, Revocation),
    ) {
        let Some(before) = state.holdings.revoke(number, why, ending.now) else { return };
        let holder = Holder { client: ending.client.id, state: number };
        self.release_state(ending.now, holder, &before, &mut ending.wakes);
        ending.ended += 1;
        // In minor version 0 the seqid of the owner still counts.
        if ending.client.protocol != ClientProtocol::Setclientid {
            before.owner().into_iter().for_each(|owner| state.holdings.forget_idle(owner));
        }
    }
}

/// Returns the client's opens and delegations of a file that rest on the grants of `grantee` and
/// need more than `allowed`.
fn beyond(
    state: &ClientState,
    (client, file): (&Client, &File),
    (grantee, allowed): (&Grantee, GrantedAccess),
) -> (Vec<u32>, Vec<u32>) {
    let on_file = file.state();
    let ends = |number: &u32| {
        let is_beyond = |it: &State| {
            it.what.grantee().is_some_and(|its| **its == *grantee) && !allowed.suffices(&it.what)
        };
        state.holdings.get(*number).is_some_and(is_beyond)
    };
    let opens = on_file.shares.opens_of(client.id).filter(ends).collect();
    let delegation = on_file.delegations.of(client.id).map(|holder| holder.state);
    (opens, delegation.into_iter().filter(ends).collect())
}
