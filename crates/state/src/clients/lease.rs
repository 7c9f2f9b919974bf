//! Leases (RFC 8881, 8.3). The server is courteous: an expired client keeps its state until another
//! needs it.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, Standing};
use crate::limits::{HOST_GONE_AFTER, HOST_QUESTIONS_MIN};
use crate::sync::atomic::Ordering;
use crate::{Caller, Client, ClientId, ClientProtocol, Engine, Error, Result};

impl Engine {
    /// RENEW (RFC 7530, 16.27). The caller must be the principal that introduced the client, or one
    /// that has opens or locks of it.
    ///
    /// # Errors
    /// [`Error::StaleClientid`], [`Error::Expired`]: the client is unknown or was forgotten.
    /// [`Error::WrongCred`], [`Error::Delay`]: another principal asks. [`Error::CbPathDown`]: the
    /// lease is renewed, but the callback channel is broken while the client has delegations.
    /// [`Error::LeaseMoved`]: the lease is renewed, but some state has moved to another server.
    pub fn renew(&self, now: Duration, clientid: ClientId, caller: Caller) -> Result<()> {
        let client = self.client(clientid, caller)?;
        let state = client.live()?;
        if !client.is_renewed_by(&state, &caller) {
            return Err(Error::WrongCred);
        }
        client.renew(now);
        // The client looks for the other server first: while it does, this lease goes on.
        if client.has_moved_lease() {
            return Err(Error::LeaseMoved);
        }
        let holds = state.holdings.counts().delegations > 0;
        if holds && client.lost_callbacks() { Err(Error::CbPathDown) } else { Ok(()) }
    }

    /// Returns a confirmed client of minor version 0 by its clientid. The call does not renew its
    /// lease; the operation that follows does.
    ///
    /// # Errors
    /// [`Error::StaleClientid`], [`Error::Expired`]; [`Error::Delay`]: see [`Caller`].
    pub fn client_of(&self, clientid: ClientId, caller: Caller) -> Result<Arc<Client>> {
        self.client(clientid, caller)
    }

    /// Returns a client of any protocol by its clientid, confirmed or not; for administrators.
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
        if standing != Standing::Confirmed || client.protocol != ClientProtocol::Setclientid {
            return Err(Error::StaleClientid);
        }
        client.admit(&caller)?;
        Ok(client)
    }

    /// Returns whether a client's lease has expired, or a host of NLM counts as gone.
    pub(crate) fn has_expired(&self, now: Duration, client: &Client) -> bool {
        now >= client.renewed().saturating_add(self.silence_max(client))
    }

    /// Returns whether a client's name is in use: its lease has not expired, and it has sessions or
    /// state.
    pub(crate) fn is_in_use(&self, now: Duration, client: &Client) -> bool {
        let state = client.state();
        !self.has_expired(now, client) && (state.has_state() || !state.sessions.is_empty())
    }

    /// Returns whether no other client may take a client's name. A client of minor version 0
    /// without opens keeps its name as long as it renews its lease. Others may introduce themselves
    /// under that name meanwhile (RFC 7530, 16.33.5), but their confirmation is refused.
    pub(crate) fn keeps_name(&self, now: Duration, client: &Client) -> bool {
        let is_idle =
            client.protocol == ClientProtocol::Setclientid && !self.has_expired(now, client);
        is_idle || self.is_in_use(now, client)
    }

    /// Returns the time that a client may be silent before others may take its state.
    ///
    /// A host that never answered a probe may be behind a firewall, so that its silence says
    /// little.
    pub(crate) fn silence_max(&self, client: &Client) -> Duration {
        let unanswered = client.asked.unanswered.load(Ordering::Relaxed);
        match client.protocol {
            ClientProtocol::Setclientid | ClientProtocol::ExchangeId => self.settings.lease,
            ClientProtocol::Nlm if client.has_callbacks() && unanswered >= HOST_QUESTIONS_MIN => {
                HOST_GONE_AFTER
            }
            ClientProtocol::Nlm => self.settings.courtesy,
        }
    }
}

impl Client {
    /// Returns whether a caller that names the client alone, and no state of it, renews its lease:
    /// the principal that introduced the client does, and one that has opens or locks of it.
    pub(crate) fn is_renewed_by(&self, state: &ClientState, caller: &Caller) -> bool {
        self.is_principal(caller) || state.holdings.has_owner_of(caller.principal)
    }
}
