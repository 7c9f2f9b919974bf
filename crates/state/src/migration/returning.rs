//! A client returns to an engine that still knows it: a volume had moved away, and comes back.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Names;
use crate::client_state::{
    ClientState, Holdings, Owner, OwnerKind, State, StateKind, UnacknowledgedGrant,
};
use crate::file::Holder;
use crate::{Client, Engine, Error, ExportedClient, ExportedSession, Result, SessionId};

/// The things that are taken from a client, and added to it, when it returns. An import that fails
/// is undone by them.
pub(super) struct Merge {
    /// Owners without states, whose numbers or names the import needs.
    owners: Vec<(u32, Owner)>,
    /// Closed opens whose numbers the import needs.
    closed: Vec<(u32, State)>,
    /// The last number that was given to a state before, and the one that the import sets.
    last_number: (u32, u32),
    /// The numbers of the states and the owners of the import.
    added: (Vec<u32>, Vec<u32>),
    sessions: Vec<SessionId>,
}

impl Engine {
    /// Returns the client that an import would add to this engine, if it is known here: the same
    /// instance of the client has kept its clientid. If its lease has expired, and it has state, it
    /// is forgotten instead, as it would be for any other client.
    pub(super) fn returning(
        &self,
        now: Duration,
        names: &mut Names,
        exported: &ExportedClient,
    ) -> Option<Arc<Client>> {
        let name = exported.name.by(exported.protocol, exported.introduced_by);
        let known = Arc::clone(names.confirmed(&name).filter(|it| is_again(it, exported))?);
        if self.has_expired(now, &known) && self.would_mix(now, &mut known.state()) {
            self.discard(now, names, &known);
            return None;
        }
        Some(known)
    }

    /// Adds imported state to a client that is known here. Its sessions here stay. Adds nothing if
    /// that fails.
    ///
    /// # Errors
    /// [`Error::ClidInuse`]: it has state here, and both engines may have given the same number to
    /// different states. [`Error::ReclaimConflict`], [`Error::Delay`], [`Error::Resource`] as for a
    /// new client.
    pub(super) fn take_back(
        &self,
        now: Duration,
        client: &Arc<Client>,
        exported: &ExportedClient,
    ) -> Result<Merge> {
        let mut state = client.live()?;
        if self.would_mix(now, &mut state) {
            return Err(Error::ClidInuse);
        }
        let merge = make_way(&mut state, exported, self.settings.limits.owners_per_client);
        state.holdings.continue_after(merge.last_number.1);
        let added = self.add_state(now, client, &mut state, exported);
        drop(state);
        match added {
            Ok(()) => Ok(merge),
            Err(error) => {
                self.undo_return(now, client, merge);
                Err(error)
            }
        }
    }

    /// Removes what [`Engine::take_back`] has added to a client, and restores what it had.
    pub(super) fn undo_return(&self, now: Duration, client: &Client, merge: Merge) {
        let Merge { owners, closed, last_number: (before, set), added, sessions } = merge;
        let mut state = client.state();
        let holdings = &mut state.holdings;
        let take = |number| Some((number, holdings.remove(number)?));
        let states: Vec<(u32, State)> = added.0.into_iter().filter_map(take).collect();
        added.1.into_iter().for_each(|owner| drop(holdings.remove_owner(owner)));
        restore(holdings, owners, closed);
        if holdings.last_number() == set {
            holdings.continue_after(before);
        }
        state.sessions.retain(|session| !sessions.contains(session));
        drop(state);
        sessions.iter().for_each(|session| self.drop_session(session));
        let mut wakes = Vec::new();
        for (number, state) in states {
            let holder = Holder { client: client.id, state: number };
            self.release_state(now, holder, &state, &mut wakes);
        }
        self.announce(wakes);
    }

    /// Applies the rest of an import to a client that has returned. It keeps the address for
    /// callbacks and the sequence of CREATE_SESSION that it has here: it has others at each server.
    pub(super) fn settle_return(&self, now: Duration, client: &Client, exported: &ExportedClient) {
        let renewed = now.saturating_sub(exported.silent);
        if renewed > client.renewed() {
            client.move_to(exported.origin);
            client.renew(renewed);
        }
        if !exported.courteous {
            client.set_courteous(false);
        }
        client.set_monitor_state(exported.monitor_state);
        client.set_told(exported.told.map(|told| now.saturating_sub(told)));
        let mut state = client.state();
        state.granted.extend(exported.granted.iter().map(UnacknowledgedGrant::imported));
        state.reclaim_complete |= exported.reclaim_complete;
        // No sessionid may be given out twice, whichever engine has given out more.
        state.sessions_made = state.sessions_made.max(exported.sessions_made);
        client.note_revoked(&state);
        client.note_grantees(&state);
        let both = exported.sessions.iter().filter(|it| state.sessions.contains(&it.id));
        both.for_each(|it| self.catch_up(it));
    }

    /// Lets a session go on where it is further: here, or at the other engine.
    fn catch_up(&self, exported: &ExportedSession) {
        let here = self.session(&exported.id).filter(|here| here.fore == exported.fore);
        here.into_iter().for_each(|here| here.channels().slots.catch_up(exported));
    }

    /// Returns whether a client has state or copies that an import could be confused with.
    fn would_mix(&self, now: Duration, state: &mut ClientState) -> bool {
        let holdings = &mut state.holdings;
        holdings.offloads.forget(now.saturating_sub(self.settings.lease));
        let is_closed = |it: &State| matches!(&it.what, StateKind::Open(open) if open.closed);
        let is_free = holdings.states().all(|(_, it)| is_closed(it))
            && holdings.owners().all(|(_, owner)| !owner.busy)
            && holdings.offloads.0.is_empty();
        !is_free
    }
}

/// Returns whether the client is the same instance as the exported one.
fn is_again(client: &Client, exported: &ExportedClient) -> bool {
    client.id == exported.id
        && client.verifier == exported.name.verifier
        && client.introducer().principal == exported.introduced_by.principal
}

/// Takes from a client what has numbers or names that the import needs. If the client would have
/// too many owners, all that it has here give way: without states they only keep replies.
fn make_way(state: &mut ClientState, exported: &ExportedClient, owners_max: usize) -> Merge {
    let states: Vec<u32> = exported.states.iter().map(|it| it.number).collect();
    let owners: Vec<u32> = exported.owners.iter().map(|it| it.number).collect();
    let names: HashSet<(OwnerKind, &[u8])> =
        exported.owners.iter().map(|it| (it.kind, &*it.name)).collect();
    let sessions = exported.sessions.iter().map(|it| it.id);
    let sessions = sessions.filter(|id| !state.sessions.contains(id)).collect();
    let holdings = &mut state.holdings;
    let is_full = holdings.owners_len() + owners.len() > owners_max;
    let gives_way = |(number, owner): &(u32, &Owner)| {
        is_full || owners.contains(number) || names.contains(&(owner.kind, &*owner.name))
    };
    let leaving = holdings.owners().filter(gives_way).map(|(number, _)| number);
    let leaving: Vec<u32> = leaving.collect();
    let last = holdings.last_number();
    let take = |number: &u32| Some((*number, holdings.remove(*number)?));
    let closed = states.iter().filter_map(take).collect();
    let take = |number: u32| Some((number, holdings.remove_owner(number)?));
    let taken = leaving.into_iter().filter_map(take).collect();
    let last_number = (last, later(last, exported.last_number));
    Merge { owners: taken, closed, last_number, added: (states, owners), sessions }
}

/// Restores what gave way. If the memory has become short meanwhile, a retry of a CLOSE is not
/// answered again.
fn restore(holdings: &mut Holdings, owners: Vec<(u32, Owner)>, closed: Vec<(u32, State)>) {
    for (number, owner) in owners {
        let _ = holdings.restore_owner(number, owner);
    }
    for (number, state) in closed {
        let _ = holdings.restore(number, state);
    }
}

/// Returns the number that was given out later. Numbers begin anew after the last.
const fn later(one: u32, other: u32) -> u32 {
    if other.wrapping_sub(one) <= u32::MAX / 2 { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::later;

    #[test]
    fn the_later_of_two_numbers_is_found_also_behind_the_last() {
        assert_eq!((later(3, 7), later(7, 3), later(7, 7)), (7, 7, 7));
        assert_eq!((later(u32::MAX, 2), later(2, u32::MAX)), (2, 2));
    }
}
