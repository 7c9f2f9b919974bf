//! Clients that are forgotten: after their lease, for room, or by an administrator.

use std::sync::Arc;
use std::time::Duration;

use crate::client::Names;
use crate::client_state::Standing;
use crate::limits::{CLIENTS_PER_ORIGIN_MIN, FAIR_PART, GOING_PART};
use crate::{Client, ClientProtocol, Engine, Error, Origin, Record, Result};

impl Engine {
    /// Makes room for one more client of `origin`: forgets one with an expired lease, or some that
    /// are unconfirmed or are hosts of NLM that hold nothing, the longest silent first. An origin
    /// that has its fair part of the places makes room among its own clients.
    ///
    /// # Errors
    /// [`Error::Delay`]: nobody can go.
    pub(crate) fn make_room(&self, now: Duration, names: &mut Names, origin: Origin) -> Result<()> {
        let limit = self.settings.limits.clients;
        let left = limit.saturating_sub(self.clients.len());
        let fair = (left / FAIR_PART).max(CLIENTS_PER_ORIGIN_MIN.min(limit));
        let has_most = names.clients_from(origin) >= fair;
        if left > 0 && !has_most {
            return Ok(());
        }
        if names.was_refused(origin, now) {
            return Err(Error::Delay);
        }
        let mut all = self.clients.all();
        let is_near = |client: &Client| client.introducer().origin.network() == origin.network();
        all.retain(|client| !has_most || is_near(client));
        let expired = all.iter().filter(|client| self.has_expired(now, client));
        if let Some(oldest) = expired.min_by_key(|client| client.renewed()) {
            self.discard(now, names, oldest);
            return Ok(());
        }
        let mut going: Vec<_> = all.iter().filter(|client| client.is_dispensable()).collect();
        if going.is_empty() {
            names.refuse(origin, now);
            return Err(Error::Delay);
        }
        going.sort_by_cached_key(|client| client.renewed());
        // One at a time all would be looked through for each stranger of a flood.
        let count = (self.settings.limits.clients / GOING_PART).max(1);
        going.into_iter().take(count).for_each(|client| self.discard(now, names, client));
        Ok(())
    }

    /// Forgets expired clients: at once without state, else after the courtesy. During grace none
    /// is forgotten, since nobody may take its state, and many clients that reclaim one after the
    /// other may take longer than a lease.
    pub(crate) fn expire_clients(&self, now: Duration) {
        if self.is_in_grace() {
            return;
        }
        for client in self.clients.all() {
            if client.protocol == ClientProtocol::Setclientid {
                self.reap_owners(now, &client);
            }
            let expired = self.has_expired(now, &client);
            let begins = expired != client.set_courteous(expired);
            if !expired {
                continue;
            }
            let courtesy = self.silence_max(&client).saturating_add(self.settings.courtesy);
            let over = now >= client.renewed().saturating_add(courtesy);
            // A waiter that comes later finds the expired lease itself.
            let is_waited_for = || begins && client.state().holdings.are_awaited(client.id);
            if over || !client.state().has_state() || is_waited_for() {
                self.evict(now, &client);
            }
        }
    }

    /// Forgets clients whose time would not be over but for the memory for what clients hold, which
    /// becomes short: the one not heard of for longest first.
    pub(crate) fn end_courtesy(&self, now: Duration) {
        if self.held.wanted_bytes() == 0 || self.is_in_grace() {
            return;
        }
        let mut clients = self.clients.all();
        clients.retain(|client| self.has_expired(now, client));
        clients.sort_by_cached_key(|client| client.renewed());
        for client in clients {
            if self.held.wanted_bytes() == 0 {
                return;
            }
            // The loop takes a while: the client may have renewed its lease meanwhile.
            if self.has_expired(now, &client) {
                self.evict(now, &client);
            }
        }
    }

    /// Forgets a client and all it has, now; it must reclaim nothing, in this grace period or after
    /// another restart.
    pub fn evict(&self, now: Duration, client: &Arc<Client>) {
        let mut names = self.clients.names();
        let state = client.state();
        let (standing, counts) = (state.standing, state.holdings.counts());
        drop(state);
        self.discard(now, &mut names, client);
        // An unconfirmed client says nothing about the confirmed one of that name.
        if standing == Standing::Confirmed {
            self.grace.forget(client);
        }
        self.counters.evicted.add(1);
        self.counters.revoked.add(counts.delegations);
    }

    pub(crate) fn discard(&self, now: Duration, names: &mut Names, client: &Arc<Client>) {
        let mut state = client.state();
        let standing = std::mem::replace(&mut state.standing, Standing::Gone);
        if standing == Standing::Gone {
            return;
        }
        let sessions = std::mem::take(&mut state.sessions);
        let holdings = state.holdings.take();
        drop(state);
        self.clients.remove(names, client);
        sessions.iter().for_each(|session| self.drop_session(session));
        self.release(now, client, holdings);
        let replaced = names.confirmed(client.protocol, &client.owner).is_some();
        if standing == Standing::Confirmed && !replaced {
            self.record(Record::Forget(client.recorded()));
        }
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
}

impl Client {
    /// Returns whether it may be forgotten before its lease expires: it is unconfirmed, or a host
    /// that holds nothing.
    fn is_dispensable(&self) -> bool {
        let state = self.state();
        state.standing == Standing::Unconfirmed
            || self.protocol == ClientProtocol::Nlm && !state.has_state()
    }
}
