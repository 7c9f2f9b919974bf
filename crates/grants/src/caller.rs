use std::net::IpAddr;
use std::sync::Arc;

use comity_keys::PublicKey;

use crate::accounts::Account;

/// Returns the known names of a client's host, separated by spaces. It never waits for a look-up:
/// until a name is known the text is empty.
pub type ClientNames = dyn Fn() -> String + Send + Sync;

/// A key with the address of its calls.
#[derive(Clone)]
pub struct KeyCaller {
    /// The key.
    pub key: PublicKey,
    /// The key's name in KeyNote.
    pub name: String,
    /// The address that its calls come from.
    pub address: IpAddr,
    /// Returns the names of its host; `None` if they are unknown.
    pub client_names: Option<Arc<ClientNames>>,
    /// The account as which it acts where the policy of the export gives it rights.
    pub guest: Option<Arc<Account>>,
}

impl KeyCaller {
    /// Makes a caller without host names.
    #[must_use]
    pub fn new(key: PublicKey, address: IpAddr) -> Self {
        Self { key, name: key.to_keynote(), address, client_names: None, guest: None }
    }

    /// Sets the function that returns the names of its host.
    #[must_use]
    pub fn named(self, names: Arc<ClientNames>) -> Self {
        Self { client_names: Some(names), ..self }
    }

    /// Sets the account as which the key acts where the policy of an export gives it rights.
    #[must_use]
    pub fn as_guest(self, guest: Arc<Account>) -> Self {
        Self { guest: Some(guest), ..self }
    }

    /// The same caller with another key, for a question about that key with this caller's
    /// attributes.
    pub(crate) fn through(&self, key: PublicKey) -> Self {
        Self { key, ..self.clone() }
    }
}
