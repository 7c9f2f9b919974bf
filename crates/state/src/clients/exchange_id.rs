//! EXCHANGE_ID: the introduction of clients of minor versions 1 and 2 (RFC 8881, 18.35).

use std::sync::Arc;
use std::time::Duration;

use crate::client::{Names, NewClient};
use crate::client_state::Standing;
use crate::{Caller, Client, ClientId, ClientOwner, ClientProtocol, Engine, Error, Result};

/// The arguments of EXCHANGE_ID that matter to the state.
#[derive(Debug, Clone)]
pub struct ExchangeId {
    /// The name and the verifier that it presents.
    pub owner: ClientOwner,
    /// The principal and the origin of the call.
    pub caller: Caller,
    /// True if it updates a confirmed record (`EXCHGID4_FLAG_UPD_CONFIRMED_REC_A`).
    pub update: bool,
}

/// The results of EXCHANGE_ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchanged {
    /// Its clientid.
    pub clientid: ClientId,
    /// The sequenceid of its next CREATE_SESSION.
    pub sequenceid: u32,
    /// True if it is confirmed (`EXCHGID4_FLAG_CONFIRMED_R`).
    pub confirmed: bool,
}

impl Engine {
    /// EXCHANGE_ID, by the table of cases of RFC 8881, 18.35.4.
    ///
    /// # Errors
    /// [`Error::ClidInuse`], [`Error::Noent`], [`Error::NotSame`], [`Error::Perm`] as in that
    /// table. [`Error::Delay`]: there are too many clients, or the name belongs to a client of
    /// another origin whose lease has not expired.
    pub fn exchange_id(&self, now: Duration, args: ExchangeId) -> Result<Exchanged> {
        let mut names = self.clients.names();
        let name = args.owner.by(ClientProtocol::ExchangeId, args.caller);
        let confirmed = names.confirmed(&name).cloned();
        if args.update {
            return self.update(now, confirmed, &args);
        }
        if let Some(old) = confirmed.as_ref().filter(|old| old.is_again(&args)) {
            return Ok(known(now, old, args.caller));
        }
        let holder = confirmed.as_ref().filter(|old| self.is_in_use(now, old));
        self.may_take_name(holder, (ClientProtocol::ExchangeId, &args.owner), args.caller)?;
        if let Some(old) = confirmed.filter(|old| !old.is_principal(&args.caller)) {
            self.discard(now, &mut names, &old);
        }
        // The state of an earlier instance stays until CREATE_SESSION confirms the new one.
        self.meet(now, &mut names, args)
    }

    fn update(
        &self,
        now: Duration,
        confirmed: Option<Arc<Client>>,
        args: &ExchangeId,
    ) -> Result<Exchanged> {
        let old = confirmed.ok_or(Error::Noent)?;
        // Check the principal first: no other principal may learn whether a verifier is right.
        if !old.is_principal(&args.caller) {
            return Err(Error::Perm);
        }
        if old.verifier != args.owner.verifier {
            return Err(Error::NotSame);
        }
        Ok(known(now, &old, args.caller))
    }

    /// Introduces a client that is unknown, or known with another verifier.
    fn meet(&self, now: Duration, names: &mut Names, args: ExchangeId) -> Result<Exchanged> {
        let ExchangeId { owner, caller, .. } = args;
        let birth =
            NewClient { protocol: ClientProtocol::ExchangeId, owner, caller, announced: None };
        let client = self.introduce(now, names, birth)?;
        let sequenceid = client.state().creation.expected();
        Ok(Exchanged { clientid: client.id, sequenceid, confirmed: false })
    }

    /// Checks whether a caller may take a name, which `holder` may have. The client itself may, and
    /// so may the same principal at the same origin, which has restarted. The same principal at
    /// another origin has to wait until the lease expires. If the client has moved there, that is
    /// soon; if the client is still alive elsewhere, that is never.
    ///
    /// # Errors
    /// [`Error::ClidInuse`]: another principal has the name. [`Error::Delay`]: the lease has not
    /// expired.
    pub(crate) fn may_take_name(
        &self,
        holder: Option<&Arc<Client>>,
        (protocol, owner): (ClientProtocol, &ClientOwner),
        caller: Caller,
    ) -> Result<()> {
        let Some(old) = holder else { return self.may_take_free_name((protocol, owner), caller) };
        if !old.is_principal(&caller) {
            return Err(Error::ClidInuse);
        }
        let is_there = old.verifier == owner.verifier || old.origin() == caller.origin;
        if is_there { Ok(()) } else { Err(Error::Delay) }
    }

    /// Makes an unconfirmed client. It replaces an unconfirmed one that the same caller introduced
    /// under the same name.
    pub(crate) fn introduce(
        &self,
        now: Duration,
        names: &mut Names,
        birth: NewClient,
    ) -> Result<Arc<Client>> {
        let name = birth.owner.by(birth.protocol, birth.caller);
        let old = names.unconfirmed(&name, birth.caller).cloned();
        old.into_iter().for_each(|old| self.discard(now, names, &old));
        self.make_room(now, names, birth.caller.origin)?;
        Ok(self.clients.introduce(now, names, birth, &self.held))
    }
}

impl Client {
    /// Returns whether the same instance of the client repeats its EXCHANGE_ID, perhaps from
    /// another address.
    fn is_again(&self, args: &ExchangeId) -> bool {
        self.is_principal(&args.caller) && self.verifier == args.owner.verifier
    }
}

fn known(now: Duration, client: &Client, caller: Caller) -> Exchanged {
    client.renew(now);
    client.move_to(caller.origin);
    let state = client.state();
    let confirmed = state.standing == Standing::Confirmed;
    Exchanged { clientid: client.id, sequenceid: state.creation.expected(), confirmed }
}
