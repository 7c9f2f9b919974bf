//! The identity that a key gives its caller at an export.

use std::net::IpAddr;
use std::sync::Arc;

use comity_grants::{Account, Grants, Holder};
use comity_keys::PublicKey;

use crate::rules::{KeyUse, Rules};

/// The identity that a caller has at an export because of the key that it proved.
#[derive(Clone)]
pub(crate) enum KeyIdentity {
    /// It proved none, or the key does not matter here: it is who it says.
    None(Option<PublicKey>),
    /// The key is bound to an account: the caller is that user.
    Account(PublicKey, Arc<Account>),
    /// The caller acts by what was granted to the key.
    Holder(Arc<Holder>),
    /// The export wants a key, and the caller proved none.
    Missing,
}

impl KeyIdentity {
    /// The identity of a peer that has proved a key, at an address, under these rules.
    pub(crate) fn of(
        grants: Option<&Arc<Grants>>,
        (key, address): (Option<PublicKey>, IpAddr),
        rules: &Rules,
    ) -> Self {
        let (Some(grants), Some(key)) = (grants, key) else {
            return if rules.key_use == KeyUse::Only { Self::Missing } else { Self::None(None) };
        };
        if let Some(account) = grants.accounts().get(&key) {
            return Self::Account(key, Arc::clone(account));
        }
        match rules.key_use {
            KeyUse::AccountsOnly => Self::None(Some(key)),
            KeyUse::Preferred if !grants.is_holder(&key) => Self::None(Some(key)),
            KeyUse::Preferred | KeyUse::Only => {
                Self::Holder(Arc::new(Holder::new(grants, key, address)))
            }
        }
    }

    /// The key that the caller has proved.
    pub(crate) fn key(&self) -> Option<&PublicKey> {
        match self {
            Self::None(key) => key.as_ref(),
            Self::Account(key, _) => Some(key),
            Self::Holder(holder) => Some(holder.key()),
            Self::Missing => None,
        }
    }

    /// Returns whether the caller is known by its key and not by what it says.
    pub(crate) const fn is_by_key(&self) -> bool {
        matches!(self, Self::Account(..) | Self::Holder(_))
    }
}
