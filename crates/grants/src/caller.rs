use std::net::IpAddr;
use std::sync::Arc;

use comity_keys::PublicKey;

use crate::accounts::Account;

/// Tells the names by which a client's host is known now, with spaces between them. It never waits
/// for a name: until one is known the text is empty.
pub type ClientNames = dyn Fn() -> String + Send + Sync;

/// A key that calls from an address.
#[derive(Clone)]
pub struct KeyCaller {
    /// The key.
    pub key: PublicKey,
    /// The key as KeyNote names it.
    pub name: String,
    /// The address that its calls come from.
    pub address: IpAddr,
    /// Tells the names of its host; without it, none is known.
    pub client_names: Option<Arc<ClientNames>>,
    /// The account that it acts as where the policy of the export gives it rights.
    pub guest: Option<Arc<Account>>,
}

impl KeyCaller {
    /// A key at an address, without names.
    #[must_use]
    pub fn new(key: PublicKey, address: IpAddr) -> Self {
        Self { key, name: key.to_keynote(), address, client_names: None, guest: None }
    }

    /// The same key on a host whose names `names` tells.
    #[must_use]
    pub fn named(self, names: Arc<ClientNames>) -> Self {
        Self { client_names: Some(names), ..self }
    }

    /// The same key, which acts as `guest` where the policy of an export gives it rights.
    #[must_use]
    pub fn as_guest(self, guest: Arc<Account>) -> Self {
        Self { guest: Some(guest), ..self }
    }

    /// Another key in a question that this one asks: the attributes are those of this caller.
    pub(crate) fn through(&self, key: PublicKey) -> Self {
        Self { key, ..self.clone() }
    }
}
