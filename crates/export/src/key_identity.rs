//! The identity that a key gives its caller at an export.

use std::net::IpAddr;
use std::sync::Arc;

use comity_grants::{Account, Grants, Holder, KeyCaller};
use comity_keys::PublicKey;

use crate::Export;
use crate::rules::{KeyUse, Rules};

/// The identity at an export of a caller that may have proved a key.
#[derive(Clone)]
pub(crate) enum KeyIdentity {
    /// The caller proved no key, or its key does not matter here: the ids of its credential count.
    None(Option<PublicKey>),
    /// The key is bound to an account: the caller acts as that user.
    Account(PublicKey, Arc<Account>),
    /// The caller acts by the grants of its key.
    Holder(Arc<Holder>),
    /// The export requires a key, and the caller proved none.
    Missing,
}

impl KeyIdentity {
    /// Returns the identity at an export of a peer at an address that has proved a key, under these
    /// rules.
    pub(crate) fn of(
        grants: Option<&Arc<Grants>>,
        export: &Export,
        (key, address): (Option<PublicKey>, IpAddr),
        rules: &Rules,
    ) -> Self {
        let (Some(grants), Some(key)) = (grants, key) else {
            return if rules.key_use == KeyUse::Only { Self::Missing } else { Self::None(None) };
        };
        if let Some(account) = grants.accounts().get(&key) {
            return Self::Account(key, Arc::clone(account));
        }
        let has_policy = || export.policy().is_some_and(|policy| policy.names(&key));
        let may_act = || grants.is_holder(&key) || has_policy();
        match rules.key_use {
            KeyUse::AccountsOnly => Self::None(Some(key)),
            KeyUse::Preferred if !may_act() => Self::None(Some(key)),
            KeyUse::Preferred | KeyUse::Only => {
                let caller = key_caller(export, (key, address), rules);
                Self::Holder(Arc::new(Holder::of(grants, caller)))
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

    /// Returns whether the caller is identified by its key and not by its credential.
    pub(crate) const fn is_by_key(&self) -> bool {
        matches!(self, Self::Account(..) | Self::Holder(_))
    }
}

/// A key at an address as it acts at an export: on a host of the names that are known when a
/// condition asks for them, and as the anonymous user where it has rights by the policy.
pub(crate) fn key_caller(
    export: &Export,
    (key, address): (PublicKey, IpAddr),
    rules: &Rules,
) -> KeyCaller {
    let cred = rules.ids.anonymous.clone();
    let caller = KeyCaller::new(key, address);
    let caller = caller.as_guest(Arc::new(Account { user: "(anonymous)".to_owned(), cred }));
    match export.names() {
        Some(names) => {
            let names = Arc::clone(names);
            caller.named(Arc::new(move || names.known_names(address.to_canonical())))
        }
        None => caller,
    }
}
