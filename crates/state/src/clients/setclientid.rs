//! SETCLIENTID: the introduction of clients of minor version 0 (RFC 7530, 16.33 and 16.34).

use std::sync::Arc;
use std::time::Duration;

use crate::client::{Names, NewClient};
use crate::client_state::{Announced, Standing};
use crate::{
    CallbackAddress, Caller, Client, ClientId, ClientOwner, ClientProtocol, Effect, Engine, Error,
    Result, Verifier,
};

/// The arguments of SETCLIENTID.
#[derive(Debug, Clone)]
pub struct Setclientid {
    /// The name and the verifier that it presents.
    pub owner: ClientOwner,
    /// The principal and the origin of the call.
    pub caller: Caller,
    /// The address for callbacks.
    pub callback: CallbackAddress,
}

/// The results of SETCLIENTID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Introduced {
    /// Its clientid.
    pub clientid: ClientId,
    /// The verifier that SETCLIENTID_CONFIRM must present.
    pub confirm: Verifier,
}

impl Engine {
    /// SETCLIENTID.
    ///
    /// # Errors
    /// [`Error::ClidInuse`]: another principal has this name, and has state. [`Error::Delay`]:
    /// there are too many clients, or the name belongs to a client of another origin whose lease
    /// has not expired.
    pub fn setclientid(&self, now: Duration, args: Setclientid) -> Result<Introduced> {
        let confirm = self.next_confirm();
        let announced = Announced { confirm, callback: args.callback };
        let Setclientid { owner, caller, .. } = args;
        let mut names = self.clients.names();
        let confirmed = names.confirmed(&owner.by(ClientProtocol::Setclientid, caller));
        let holder = confirmed.filter(|old| self.is_in_use(now, old));
        self.may_take_name(holder, (ClientProtocol::Setclientid, &owner), caller)?;
        let again =
            |old: &&Arc<Client>| old.verifier == owner.verifier && old.is_principal(&caller);
        if let Some(old) = confirmed.filter(again) {
            old.state().announced = Some(announced);
            return Ok(Introduced { clientid: old.id, confirm });
        }
        let birth = NewClient {
            protocol: ClientProtocol::Setclientid,
            owner,
            caller,
            announced: Some(announced),
        };
        let client = self.introduce(now, &mut names, birth)?;
        Ok(Introduced { clientid: client.id, confirm })
    }

    /// SETCLIENTID_CONFIRM. It ends the state of the client's earlier instance.
    ///
    /// # Errors
    /// [`Error::StaleClientid`]: no SETCLIENTID returned this clientid and verifier.
    /// [`Error::ClidInuse`]: another principal sent that SETCLIENTID, or has the name now and has
    /// state. [`Error::Delay`]: the same principal at another origin has the name.
    pub fn setclientid_confirm(
        &self,
        now: Duration,
        (clientid, confirm): (ClientId, Verifier),
        caller: Caller,
    ) -> Result<()> {
        let mut names = self.clients.names();
        let client = self.clients.get(clientid).ok_or(Error::StaleClientid)?;
        if client.protocol != ClientProtocol::Setclientid {
            return Err(Error::StaleClientid);
        }
        if !client.is_principal(&caller) {
            return Err(Error::ClidInuse);
        }
        // Another client may have taken the name since SETCLIENTID.
        let holder = names.confirmed(&client.recorded());
        let holder = holder.filter(|old| self.keeps_name(now, old));
        self.may_take_name(holder, (client.protocol, &client.name()), caller)?;
        self.take_announcement(&client, confirm)?;
        client.move_to(caller.origin);
        client.renew(now);
        if let Some(old) = self.confirm(&mut names, &client) {
            self.discard(now, &mut names, &old);
        }
        Ok(())
    }

    /// Applies the SETCLIENTID that returned `confirm`. A repeated confirmation changes nothing.
    fn take_announcement(&self, client: &Arc<Client>, confirm: Verifier) -> Result<()> {
        let mut state = client.live()?;
        match state.announced.take() {
            Some(announced) if announced.confirm == confirm => {
                let moved = state.callback.as_ref() != Some(&announced.callback);
                state.callback = Some(announced.callback);
                state.confirmed_by = Some(confirm);
                drop(state);
                if moved {
                    client.set_callbacks(false);
                    self.effect_queue.push(Effect::Probe { client: Arc::clone(client) });
                }
                Ok(())
            }
            other => {
                state.announced = other;
                let again = state.confirmed_by == Some(confirm);
                if again { Ok(()) } else { Err(Error::StaleClientid) }
            }
        }
    }

    /// Confirms a client under its name; returns the client that it replaces.
    pub(crate) fn confirm(&self, names: &mut Names, client: &Arc<Client>) -> Option<Arc<Client>> {
        let mut state = client.state();
        if state.standing != Standing::Unconfirmed {
            return None;
        }
        state.standing = Standing::Confirmed;
        drop(state);
        let old = names.confirm(client);
        if client.protocol != ClientProtocol::ExchangeId {
            // A client with sessions is recorded later, at its RECLAIM_COMPLETE.
            self.each_grace(|grace| grace.returned(client));
            // The record of the earlier instance, with its revoked state, does not apply to this
            // one.
            let before = old.as_ref().map(|old| crate::Record::Forget(old.recorded()));
            before.into_iter().for_each(|record| self.record(record));
            self.record(client.record());
        }
        old
    }
}
