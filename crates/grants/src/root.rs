use std::sync::Arc;

use comity_keynote::{PolicyAssertion, Principal};
use comity_keys::PublicKey;

use crate::accounts::{Account, Accounts};
use crate::caller::KeyCaller;
use crate::held::Held;
use crate::policy::Policy;
use crate::scene::Scene;

/// A source of rights that do not come from a credential.
pub(crate) enum Root<'m> {
    /// A user, by the key that is bound to the account.
    Account(&'m PublicKey, &'m Arc<Account>),
    /// The administrator, by the policy of an export; keys that it names act as the account.
    Policy(&'m Policy, &'m Arc<Account>),
}

impl<'m> Root<'m> {
    /// The roots that may give a caller rights by these credentials: signers with an account, in
    /// the order of their keys, then the policy of the export.
    pub(crate) fn all(
        candidates: &[&'m Arc<Held>],
        accounts: &'m Accounts,
        (scene, caller): (&Scene<'m>, &'m KeyCaller),
    ) -> Vec<Self> {
        let mut signers: Vec<_> = candidates.iter().map(|held| held.signer()).collect();
        signers.sort();
        signers.dedup();
        let account = |key: &'m PublicKey| Some(Self::Account(key, accounts.get(key)?));
        let policy = scene.policy.zip(caller.guest.as_ref());
        let policy = policy.map(|(policy, guest)| Self::Policy(policy, guest));
        signers.into_iter().filter_map(account).chain(policy).collect()
    }

    /// The account under whose ids the rights are used.
    pub(crate) const fn account(&self) -> &'m Arc<Account> {
        let (Self::Account(_, account) | Self::Policy(_, account)) = self;
        account
    }

    /// The key of the account.
    pub(crate) const fn key(&self) -> Option<&'m PublicKey> {
        match self {
            Self::Account(key, _) => Some(key),
            Self::Policy(..) => None,
        }
    }

    /// Its name in assertions.
    pub(crate) fn principal(&self) -> Principal {
        match self {
            Self::Account(key, _) => Principal::Key(**key),
            Self::Policy(..) => Principal::policy(),
        }
    }

    /// The unsigned assertions of the administrator.
    pub(crate) fn assertions(&self) -> &'m [PolicyAssertion] {
        match self {
            Self::Account(..) => &[],
            Self::Policy(policy, _) => policy.assertions(),
        }
    }

    /// Its name in reports.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Account(key, account) => format!("user {}, key {key}", account.user),
            Self::Policy(..) => "the policy of the export".to_owned(),
        }
    }
}
