//! How clients of minor versions 1 and 2 introduce themselves (RFC 8881, 18.35).

use std::sync::Arc;
use std::time::Duration;

use super::registry::Names;
use super::{Birth, Client, Standing};
use crate::{ClientId, ClientOwner, Desk, Engine, Error, Principal, Result};

/// The arguments of EXCHANGE_ID that decide.
#[derive(Debug, Clone)]
pub struct ExchangeId {
    /// Who it says it is.
    pub owner: ClientOwner,
    /// Who calls.
    pub principal: Principal,
    /// Whether it wants to change what is known of it (`EXCHGID4_FLAG_UPD_CONFIRMED_REC_A`).
    pub update: bool,
}

/// The results of EXCHANGE_ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchanged {
    /// Its clientid.
    pub clientid: ClientId,
    /// What its next CREATE_SESSION must say.
    pub sequenceid: u32,
    /// Whether it was known (`EXCHGID4_FLAG_CONFIRMED_R`).
    pub confirmed: bool,
}

impl Engine {
    /// EXCHANGE_ID, by the table of cases of RFC 8881, 18.35.4.
    ///
    /// # Errors
    /// [`Error::ClidInuse`], [`Error::Noent`], [`Error::NotSame`], [`Error::Perm`] as the table
    /// says; [`Error::Delay`] where there are too many clients.
    pub fn exchange_id(&self, now: Duration, args: ExchangeId) -> Result<Exchanged> {
        let mut names = self.clients.names();
        let named = names.get(&(Desk::ExchangeId, args.owner.id.clone()));
        let confirmed = named.and_then(|named| named.confirmed.clone());
        if args.update {
            return self.update(now, confirmed, &args);
        }
        match confirmed {
            Some(old) if old.principal != args.principal => {
                if self.is_in_use(now, &old) {
                    return Err(Error::ClidInuse);
                }
                self.discard(now, &mut names, &old);
            }
            Some(old) if old.verifier == args.owner.verifier => return Ok(known(now, &old)),
            // It lives anew: what it had stays until CREATE_SESSION confirms that.
            _ => {}
        }
        self.meet(now, &mut names, args)
    }

    fn update(
        &self,
        now: Duration,
        confirmed: Option<Arc<Client>>,
        args: &ExchangeId,
    ) -> Result<Exchanged> {
        let old = confirmed.ok_or(Error::Noent)?;
        if old.verifier != args.owner.verifier {
            return Err(Error::NotSame);
        }
        if old.principal != args.principal {
            return Err(Error::Perm);
        }
        Ok(known(now, &old))
    }

    /// Somebody who is not known yet, or not in this life.
    fn meet(&self, now: Duration, names: &mut Names, args: ExchangeId) -> Result<Exchanged> {
        let named = names.get(&(Desk::ExchangeId, args.owner.id.clone()));
        if let Some(old) = named.and_then(|named| named.unconfirmed.clone()) {
            self.discard(now, names, &old);
        }
        self.make_room(now, names)?;
        let (id, desk) = (self.clients.next_id(), Desk::ExchangeId);
        let ExchangeId { owner, principal, .. } = args;
        let birth = Birth { id, desk, owner, principal, announced: None };
        let client = self.introduce(now, names, birth);
        let sequenceid = client.state().creation.expected();
        Ok(Exchanged { clientid: client.id, sequenceid, confirmed: false })
    }

    pub(crate) fn introduce(&self, now: Duration, names: &mut Names, birth: Birth) -> Arc<Client> {
        let client = self.clients.insert(now, birth, &self.held);
        let named = names.entry((client.desk, client.owner.clone())).or_default();
        named.unconfirmed = Some(Arc::clone(&client));
        client
    }
}

fn known(now: Duration, client: &Client) -> Exchanged {
    client.renew(now);
    let state = client.state();
    let confirmed = state.standing == Standing::Confirmed;
    Exchanged { clientid: client.id, sequenceid: state.creation.expected(), confirmed }
}
