//! State comes to an engine that knows its client: a volume had moved away and comes back, or the
//! client uses other volumes of this engine.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::joining::Joined;
use crate::client::Names;
use crate::client_state::{ClientState, Holdings, Owner, OwnerKind, State, UnacknowledgedGrant};
use crate::file::Holder;
use crate::{
    Client, ClientProtocol, Engine, Error, ExportedClient, ExportedKind, ExportedSession,
    ExportedState, Result, SessionId,
};

/// Owners, states and sessions that an import removes from a known client, and adds to it. A failed
/// import is undone with them.
#[derive(Default)]
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
    /// Returns the client whose state an import would add to this engine, if the same instance of
    /// it is known here. If its lease has expired, and it has state, it is forgotten instead, as it
    /// would be for any other client.
    pub(super) fn returning(
        &self,
        now: Duration,
        names: &mut Names,
        exported: &ExportedClient,
    ) -> Option<Arc<Client>> {
        let is_it = |it: &&Arc<Client>| {
            is_again(it, exported) && (it.id == exported.id || self.keeps_name(now, it))
        };
        let known = Arc::clone(names.confirmed(&exported.recorded()).filter(is_it)?);
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
    /// [`Error::ClidInuse`]: it has state here with which the import would be confused;
    /// [`Error::ReclaimConflict`], [`Error::Delay`], [`Error::Resource`] as for a new client.
    pub(super) fn take_back(
        &self,
        now: Duration,
        client: &Arc<Client>,
        exported: &ExportedClient,
    ) -> Result<(Merge, Joined)> {
        let mut state = client.live()?;
        let (merge, joined) = self.fit_in(now, (client, &mut state), exported)?;
        state.holdings.continue_after(merge.last_number.1);
        let added = self.add_state(now, client, &mut state, &joined.client);
        drop(state);
        match added {
            Ok(()) => Ok((merge, joined)),
            Err(error) => {
                self.undo_return(now, client, merge);
                Err(error)
            }
        }
    }

    /// Makes room for imported state. In minor version 0 owners have seqids, so that two engines
    /// cannot both go on with an owner.
    fn fit_in(
        &self,
        now: Duration,
        (client, state): (&Client, &mut ClientState),
        exported: &ExportedClient,
    ) -> Result<(Merge, Joined)> {
        let limits = &self.settings.limits;
        if client.protocol == ClientProtocol::ExchangeId {
            let joined = Joined::new(exported, (client, state), limits)?;
            joined.owners().for_each(|owner| state.holdings.see_owner(owner, now));
            return Ok((Merge::of(state, &joined.client), joined));
        }
        if self.would_mix(now, state) {
            return Err(Error::ClidInuse);
        }
        Ok((
            remove_conflicting(state, exported, limits.owners_per_client),
            Joined::unchanged(exported),
        ))
    }

    /// Removes what [`Engine::take_back`] has added to a client, and restores what it had.
    pub(super) fn undo_return(&self, now: Duration, client: &Client, merge: Merge) {
        let Merge { owners, closed, last_number: (before, set), added, sessions } = merge;
        let mut state = client.state();
        let holdings = &mut state.holdings;
        let take = |number| Some((number, holdings.remove(number)?));
        let states: Vec<(u32, State)> = added.0.into_iter().filter_map(take).collect();
        // The client may use an owner for other files meanwhile.
        added.1.into_iter().for_each(|owner| holdings.forget_stateless(owner));
        restore(holdings, owners, closed);
        if holdings.last_number() == set {
            holdings.continue_after(before);
        }
        client.note_revoked(&state);
        client.note_grantees(&state);
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
        let mut state = client.state();
        client.set_told(told_last(now, (client, &state), exported));
        state.granted.extend(exported.granted.iter().map(UnacknowledgedGrant::imported));
        state.reclaim_complete |= exported.reclaim_complete;
        // No sessionid may be given out twice, whichever engine has given out more.
        state.sessions_made = state.sessions_made.max(exported.sessions_made);
        client.note_revoked(&state);
        client.note_grantees(&state);
        let both = exported.sessions.iter().filter(|it| state.sessions.contains(&it.id));
        both.for_each(|it| self.catch_up(it));
    }

    /// Keeps the higher sequenceid and its reply for each slot of a session that both engines have.
    fn catch_up(&self, exported: &ExportedSession) {
        let here = self.session(&exported.id).filter(|here| here.fore == exported.fore);
        here.into_iter().for_each(|here| here.channels().slots.catch_up(exported));
    }

    /// Returns whether a client has state or copies that an import could be confused with.
    fn would_mix(&self, now: Duration, state: &mut ClientState) -> bool {
        let holdings = &mut state.holdings;
        holdings.offloads.forget(now.saturating_sub(self.settings.lease));
        let is_free = holdings.states().all(|(_, it)| it.is_closed())
            && holdings.owners().all(|(_, owner)| !owner.busy)
            && holdings.offloads.0.is_empty();
        !is_free
    }
}

/// Returns whether a known client is the same instance as the exported one. If the client uses both
/// engines, each gave it a clientid of its own. Then the address must be the same as well, because
/// the principal alone (such as root) does not tell machines apart.
pub(super) fn is_again(client: &Client, exported: &ExportedClient) -> bool {
    let uses_both =
        client.protocol == ClientProtocol::ExchangeId && client.origin() == exported.origin;
    (client.id == exported.id || uses_both)
        && client.verifier == exported.name.verifier
        && client.introducer().principal == exported.introduced_by.principal
}

/// Returns when a client was told of the last revocation here or at the other engine; none if it
/// was not told of one of them.
fn told_last(
    now: Duration,
    (client, state): (&Client, &ClientState),
    exported: &ExportedClient,
) -> Option<Duration> {
    let is_revoked = |it: &&ExportedState| matches!(it.kind, ExportedKind::Revoked(_));
    let there = exported.states.iter().filter(is_revoked).count();
    let told = exported.told.map(|told| now.saturating_sub(told));
    match (state.holdings.counts().revoked > there, there > 0) {
        (true, true) => Some(client.told()?.max(told?)),
        (true, false) => client.told(),
        (false, _) => told,
    }
}

impl Merge {
    /// Returns what an import adds to a client for which nothing gives way.
    fn of(state: &ClientState, exported: &ExportedClient) -> Self {
        let states = exported.states.iter().map(|it| it.number);
        let owners = exported.owners.iter().map(|it| it.number);
        let sessions = exported.sessions.iter().map(|it| it.id);
        let sessions = sessions.filter(|id| !state.sessions.contains(id)).collect();
        Self {
            last_number: (state.holdings.last_number(), exported.last_number),
            added: (states.collect(), owners.collect()),
            sessions,
            ..Self::default()
        }
    }
}

/// Takes from a client what has numbers or names that the import needs. If the client would have
/// too many owners, all that it has here give way: without states they only keep replies.
fn remove_conflicting(
    state: &mut ClientState,
    exported: &ExportedClient,
    owners_max: usize,
) -> Merge {
    let merge = Merge::of(state, exported);
    let (states, owners) = &merge.added;
    let names: HashSet<(OwnerKind, &[u8])> =
        exported.owners.iter().map(|it| (it.kind, &*it.name)).collect();
    let holdings = &mut state.holdings;
    let is_full = holdings.owners_len() + owners.len() > owners_max;
    let gives_way = |(number, owner): &(u32, &Owner)| {
        is_full || owners.contains(number) || names.contains(&(owner.kind, &*owner.name))
    };
    let leaving = holdings.owners().filter(gives_way).map(|(number, _)| number);
    let leaving: Vec<u32> = leaving.collect();
    let take = |number: &u32| Some((*number, holdings.remove(*number)?));
    let closed = states.iter().filter_map(take).collect();
    let take = |number: u32| Some((number, holdings.remove_owner(number)?));
    let taken = leaving.into_iter().filter_map(take).collect();
    Merge { owners: taken, closed, ..merge }
}

/// Restores what gave way. If the memory has become short meanwhile, a retry of a CLOSE is not
/// answered again.
fn restore(holdings: &mut Holdings, owners: Vec<(u32, Owner)>, closed: Vec<(u32, State)>) {
    for (number, owner) in owners {
        if holdings.find_owner(owner.kind, &owner.name).is_none() && !holdings.has(number) {
            let _ = holdings.restore_owner(number, owner);
        }
    }
    for (number, state) in closed {
        let _ = holdings.restore(number, state, None);
    }
}
