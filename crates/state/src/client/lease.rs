//! Leases (RFC 8881, 8.3). Courteous: who did not renew keeps what it has until somebody needs it.

use std::sync::Arc;
use std::time::Duration;

use super::registry::Names;
use super::{Client, Standing};
use crate::limits::{CLIENTS_PER_ORIGIN_MIN, FAIR_PART, GOING_PART};
use crate::{Caller, ClientId, Desk, Engine, Error, Origin, Record, Result};

impl Engine {
    /// RENEW (RFC 7530, 16.27): by the principal that introduced the client, or one that has opens
    /// or locks of it.
    ///
    /// # Errors
    /// [`Error::StaleClientid`], [`Error::Expired`]: the client is not known, or not any more;
    /// [`Error::WrongCred`], [`Error::Delay`]: somebody else asks; [`Error::CbPathDown`]: it is
    /// renewed, but its callback channel is broken while it holds delegations.
    pub fn renew(&self, now: Duration, clientid: ClientId, caller: Caller) -> Result<()> {
        let client = self.client(clientid, caller)?;
        let state = client.live()?;
        if !client.is_principal(caller) && !state.holdings.has_owner_of(caller.principal) {
            return Err(Error::WrongCred);
        }
        client.renew(now);
        let holds = state.holdings.counts().delegations > 0;
        if holds && client.lost_callbacks() { Err(Error::CbPathDown) } else { Ok(()) }
    }

    /// A confirmed client of minor version 0 by its clientid. Its lease is renewed by what is done
    /// for it then, not by asking.
    ///
    /// # Errors
    /// [`Error::StaleClientid`], [`Error::Expired`]; [`Error::Delay`]: see [`Caller`].
    pub fn client_of(&self, clientid: ClientId, caller: Caller) -> Result<Arc<Client>> {
        self.client(clientid, caller)
    }

    /// A client by its number, of whichever desk and however it stands; for those who look after
    /// the server.
    #[must_use]
    pub fn client_by_id(&self, clientid: ClientId) -> Option<Arc<Client>> {
        self.clients.get(clientid)
    }

    fn client(&self, clientid: ClientId, caller: Caller) -> Result<Arc<Client>> {
        let Some(client) = self.clients.get(clientid) else {
            let gave_out = self.clients.gave_out(clientid);
            return Err(if gave_out { Error::Expired } else { Error::StaleClientid });
        };
        let standing = client.live()?.standing;
        if standing != Standing::Confirmed || client.desk != Desk::Setclientid {
            return Err(Error::StaleClientid);
        }
        client.admit(caller)?;
        Ok(client)
    }

    /// Whether a client's lease is over, or a host of NLM is believed to be gone.
    pub(crate) fn has_expired(&self, now: Duration, client: &Client) -> bool {
        now >= client.renewed().saturating_add(self.silence_max(client))
    }

    /// Whether a client's name is in use: its lease is not over, and it has sessions or state.
    pub(crate) fn is_in_use(&self, now: Duration, client: &Client) -> bool {
        let state = client.state();
        !self.has_expired(now, client) && (state.has_state() || !state.sessions.is_empty())
    }

    /// Whether a client's name must not be taken from it. A client of minor version 0 that has
    /// nothing open keeps it as long as it renews its lease: others may introduce themselves by it
    /// meanwhile (RFC 7530, 16.33.5), and are refused when they confirm that.
    pub(crate) fn keeps_name(&self, now: Duration, client: &Client) -> bool {
        let is_idle = client.desk == Desk::Setclientid && !self.has_expired(now, client);
        is_idle || self.is_in_use(now, client)
    }

    /// Sees to it that one more client of `origin` can be let in: one whose lease is over goes, or
    /// some that have not come to confirm themselves or are hosts of NLM that hold nothing, those
    /// not heard of for longest first. An origin that has its fair part of the places makes room
    /// among its own.
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
        let is_near = |client: &Client| client.birth_caller().origin.network() == origin.network();
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

    /// Forgets those whose time is over: at once without state, else after the courtesy. While
    /// grace lasts nobody gets what another had, so nobody goes: many clients that reclaim one
    /// after the other may take longer than a lease.
    pub(crate) fn expire_clients(&self, now: Duration) {
        if self.is_in_grace() {
            return;
        }
        for client in self.clients.all() {
            if client.desk == Desk::Setclientid {
                self.reap_owners(now, &client);
            }
            let expired = self.has_expired(now, &client);
            let begins = expired != client.set_courteous(expired);
            if !expired {
                continue;
            }
            let courtesy = self.silence_max(&client).saturating_add(self.settings.courtesy);
            let over = now >= client.renewed().saturating_add(courtesy);
            // Who comes later than this finds out itself that the lease is over.
            let is_waited_for = || begins && client.state().holdings.are_awaited(&client);
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
            // It takes a while until it is somebody's turn: he may have spoken meanwhile.
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
        // Who has not confirmed who it is says nothing for the one of that name.
        if standing == Standing::Confirmed {
            self.grace.forget(client);
        }
        self.tally.evicted.add(1);
        self.tally.revoked.add(counts.delegations);
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
        let replaced = names.confirmed(client.desk, &client.owner).is_some();
        if standing == Standing::Confirmed && !replaced {
            self.record(Record::Forget(client.recorded()));
        }
    }
}

impl Client {
    /// Whether it may be forgotten though it has a lease, or needs none.
    fn is_dispensable(&self) -> bool {
        let state = self.state();
        state.standing == Standing::Unconfirmed || self.desk == Desk::Nlm && !state.has_state()
    }
}

impl super::ClientState {
    /// Whether anything would be lost with it.
    pub(crate) fn has_state(&self) -> bool {
        !self.holdings.is_empty()
    }
}
