//! Clients are forgotten when their lease has expired, when room is needed, or by an administrator.

use std::sync::Arc;
use std::time::Duration;

use crate::client::Names;
use crate::client_state::Standing;
use crate::limits::{CLIENTS_PER_ORIGIN_MIN, FAIR_PART, GOING_PART};
use crate::{Client, ClientProtocol, Engine, Error, Origin, Record, Result};

impl Engine {
    /// Makes room for one more client of `origin`. It forgets one client with an expired lease, or
    /// some that are unconfirmed or are hosts of NLM without locks; those that were silent longest
    /// go first. An origin that uses its fair part of the table makes room among its own clients.
    ///
    /// # Errors
    /// [`Error::Delay`]: no client may be forgotten.
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
        // Several are forgotten together: a flood of new clients would otherwise cost one search of
        // the whole table for each.
        let count = (self.settings.limits.clients / GOING_PART).max(1);
        going.into_iter().take(count).for_each(|client| self.discard(now, names, client));
        Ok(())
    }

    /// Forgets expired clients. A client without state goes at once, one with state when the
    /// courtesy time is over. No client is forgotten during grace: its state could not be given to
    /// others, and if many clients reclaim one after the other, this may take longer than a lease.
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
            // An owner that begins to wait later finds the expired lease itself.
            let is_waited_for = || begins && client.state().holdings.are_awaited(client.id);
            if begins {
                self.doubt_sizes(&client);
            }
            if over || !client.state().has_state() || is_waited_for() {
                self.expire(now, &client);
            }
        }
    }

    /// Forgets expired clients before their courtesy time is over if the memory for state is short.
    /// The client that was silent longest goes first.
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
            // The client may have renewed its lease since the loop began.
            if self.has_expired(now, &client) {
                self.expire(now, &client);
            }
        }
    }

    /// Forgets a client and all its state. The client may not reclaim anything, neither in a grace
    /// period that is on nor after another restart.
    pub fn evict(&self, now: Duration, client: &Arc<Client>) {
        let mut names = self.clients.names();
        let standing = self.end(now, &mut names, client);
        // The end of an unconfirmed client does not concern the confirmed client of the same name.
        if standing == Standing::Confirmed {
            self.each_grace(|grace| grace.forget(client));
        }
    }

    /// Forgets a client whose lease has expired, outside the grace period of this server. It may
    /// still reclaim in an export that has come from another server: the lease that it did not
    /// renew here is not the one that it had there.
    pub(crate) fn expire(&self, now: Duration, client: &Arc<Client>) {
        self.end(now, &mut self.clients.names(), client);
    }

    /// Forgets a client and all its state here; returns what it was.
    fn end(&self, now: Duration, names: &mut Names, client: &Arc<Client>) -> Standing {
        let state = client.state();
        let (standing, counts) = (state.standing, state.holdings.counts());
        drop(state);
        self.discard(now, names, client);
        self.counters.evicted.add(1);
        self.counters.revoked.add(counts.delegations);
        standing
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
        let replaced = names.confirmed(&client.recorded()).is_some();
        if standing == Standing::Confirmed && !replaced {
            self.record(Record::Forget(client.recorded()));
        }
    }

    /// Forgets owners that have had no state for the time of a lease.
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
    /// Returns whether it may be forgotten before its lease expires: it is unconfirmed, or is a
    /// host of NLM without state.
    fn is_dispensable(&self) -> bool {
        let state = self.state();
        state.standing == Standing::Unconfirmed
            || self.protocol == ClientProtocol::Nlm && !state.has_state()
    }
}
