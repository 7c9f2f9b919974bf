use std::time::Duration;

use crate::client_state::Standing;
use crate::{Caller, ClientId, ClientProtocol, Engine, Error, Result};

impl Engine {
    /// DESTROY_CLIENTID (RFC 8881, 18.50).
    ///
    /// # Errors
    /// [`Error::StaleClientid`]: there is no such client. [`Error::WrongCred`]: another principal
    /// introduced the client. [`Error::ClientidBusy`]: it has sessions or state.
    pub fn destroy_clientid(
        &self,
        now: Duration,
        clientid: ClientId,
        caller: Caller,
    ) -> Result<()> {
        let mut names = self.clients.names();
        let client = self.clients.get(clientid).ok_or(Error::StaleClientid)?;
        if client.protocol != ClientProtocol::ExchangeId {
            return Err(Error::StaleClientid);
        }
        let state = client.state();
        if state.standing == Standing::Gone {
            return Err(Error::StaleClientid);
        }
        if !client.is_principal(&caller) {
            return Err(Error::WrongCred);
        }
        if !state.sessions.is_empty() || state.has_state() {
            return Err(Error::ClientidBusy);
        }
        drop(state);
        self.discard(now, &mut names, &client);
        Ok(())
    }
}
