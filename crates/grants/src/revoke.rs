//! Revoking credentials and keys.

use std::collections::HashSet;
use std::sync::Arc;

use comity_keynote::{AssertionDigest, UnverifiedReason};
use comity_keys::PublicKey;

use crate::accounts::Accounts;
use crate::grants::Grants;
use crate::held::Held;
use crate::limits::{
    REVOCATIONS_BY_ADMINISTRATOR_MAX, REVOCATIONS_BY_KEYS_MAX, REVOCATIONS_PER_ACCOUNT_MAX,
    REVOCATIONS_PER_KEY_MAX,
};
use crate::memory::Memory;
use crate::record::{MediumError, Record};
use crate::revocations::NoRoom;
use crate::storage::{ChangeTurn, Urgency};
use crate::{Moment, ObjectId, RememberedRevocation, Revoked, Revoker};

/// The thing that is to be revoked.
#[derive(Debug, Clone)]
pub enum Revocation {
    /// The credential of this digest, which the server knows.
    Credential(AssertionDigest),
    /// A credential by its text: the server may not have met it yet.
    Text(String),
    /// All that a key was given through the revoker, or at all.
    Key(PublicKey),
}

/// Why nothing was revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// No such credential is held here.
    #[error("no credential of this digest is held here: give the text of the credential")]
    Unknown,
    /// The revoker did not sign it, and nobody above did by a credential of the revoker.
    #[error("this key stands in no chain above the credential: its signer or one above revokes it")]
    NotAbove,
    /// The key has given nothing to the other key that is known here.
    #[error("nothing is known here that this key gave to the other: give the text of a credential")]
    NothingGiven,
    /// The text is no credential.
    #[error(transparent)]
    Credential(#[from] UnverifiedReason),
    /// The revoker has no account and no grant here.
    #[error(
        "nothing was granted to this key here, so that its credentials give nothing: submit the \
         credential that gives it rights before you revoke one that it signed"
    )]
    Stranger,
    /// The key has made as many revocations as a key may make.
    #[error(
        "{REVOCATIONS_PER_KEY_MAX} revocations of one key are remembered, \
         {REVOCATIONS_PER_ACCOUNT_MAX} of a key with an account, until what they revoke has \
         expired: ask somebody above in the chain, or the administrator"
    )]
    KeyFull,
    /// Keys have made as many revocations as keys may make.
    #[error(
        "the {REVOCATIONS_BY_KEYS_MAX} revocations of keys that are remembered are used up: ask \
         the administrator, who has room of his own"
    )]
    KeysFull,
    /// Administrators have made as many revocations as they may make.
    #[error(
        "{REVOCATIONS_BY_ADMINISTRATOR_MAX} revocations of administrators are remembered, until \
         what they revoke has expired; `comity account unbind` ends all that a user has granted"
    )]
    AdministratorFull,
    /// The state folder cannot be written.
    #[error("the revocation cannot be stored: {0}")]
    Store(MediumError),
}

impl Grants {
    /// Revokes, durably before it returns and at once for all calls that begin after; returns what
    /// was revoked.
    ///
    /// # Errors
    /// [`RevokeError`]: nothing was revoked then.
    pub fn revoke(&self, by: Revoker, what: &Revocation) -> Result<Vec<Revoked>, RevokeError> {
        self.storage.in_turn(|turn| {
            let (revoked, unmade) = self.decide(by, what)?;
            self.remember(turn, by, (&revoked, &unmade))?;
            self.counters.revoked(revoked.len());
            self.changed();
            Ok(revoked.into_iter().map(|revoked| revoked.what).collect())
        })
    }

    /// All that is to be revoked, and the objects whose creator is to be forgotten.
    fn decide(
        &self,
        by: Revoker,
        what: &Revocation,
    ) -> Result<(Vec<RememberedRevocation>, Vec<ObjectId>), RevokeError> {
        let accounts = self.accounts();
        let (credential, memory) = match what {
            Revocation::Credential(digest) => {
                let memory = self.read();
                (memory.find(digest).ok_or(RevokeError::Unknown)?, memory)
            }
            Revocation::Text(text) => (Arc::new(Held::read(text)?), self.read()),
            Revocation::Key(key) => {
                let memory = self.read();
                let revoked = of_key_by(&memory, &accounts, by, key)?;
                check_room(&memory, &accounts, by, &revoked)?;
                return Ok((revoked, Vec::new()));
            }
        };
        self.allowed(&memory, by, &credential)?;
        self.check_known(&memory, &accounts, by)?;
        let revoked = vec![of_credential(by, &credential)];
        check_room(&memory, &accounts, by, &revoked)?;
        Ok((revoked, self.made_by_signature(&credential)))
    }

    /// Checks that a key which revokes has a place here: else anybody could fill the memory of
    /// revocations with credentials that give nothing.
    fn check_known(
        &self,
        memory: &Memory,
        accounts: &Accounts,
        by: Revoker,
    ) -> Result<(), RevokeError> {
        let Revoker::Key(by) = by else { return Ok(()) };
        let is_named = || self.policies().iter().any(|policy| policy.names(&by));
        let is_known = accounts.get(&by).is_some() || memory.knows(&by) || is_named();
        if is_known { Ok(()) } else { Err(RevokeError::Stranger) }
    }

    /// Checks that the revoker signed a credential, or leads to its signer. A credential that the
    /// server signed for a creator stands below those who lead to the creator.
    fn allowed(&self, memory: &Memory, by: Revoker, held: &Held) -> Result<(), RevokeError> {
        let Revoker::Key(by) = by else { return Ok(()) };
        let is_by_server = self.is_by_server(held);
        let creators = held.licensees.iter().flatten().filter(|_| is_by_server);
        let below: Vec<_> = creators.chain([held.signer()]).collect();
        let is_above = by == *held.signer() || below.into_iter().any(|key| leads(memory, &by, key));
        if is_above { Ok(()) } else { Err(RevokeError::NotAbove) }
    }

    /// The objects whose creator the server has named in a credential. If that is revoked, what the
    /// creator has without a signature ends, too.
    fn made_by_signature(&self, held: &Held) -> Vec<ObjectId> {
        let objects = held.objects.iter().flatten().filter(|_| self.is_by_server(held));
        objects.copied().collect()
    }

    fn remember(
        &self,
        turn: &mut ChangeTurn<'_>,
        by: Revoker,
        (revoked, unmade): (&[RememberedRevocation], &[ObjectId]),
    ) -> Result<(), RevokeError> {
        let urgency = match by {
            Revoker::Administrator => Urgency::AtOnce,
            Revoker::Key(_) => Urgency::Usual,
        };
        let unmade_records = unmade.iter().copied().map(Record::Unmade);
        let records = revoked.iter().copied().map(Record::Revoked).chain(unmade_records);
        let records: Vec<_> = records.collect();
        self.save(turn, urgency, &records).map_err(RevokeError::Store)?;
        let mut memory = self.write();
        unmade.iter().for_each(|object| memory.creations.remove(object));
        revoked.iter().for_each(|one| memory.revocations.insert(*one));
        Ok(())
    }
}

fn check_room(
    memory: &Memory,
    accounts: &Accounts,
    by: Revoker,
    revoked: &[RememberedRevocation],
) -> Result<(), RevokeError> {
    let has_account = matches!(by, Revoker::Key(key) if accounts.get(&key).is_some());
    let new = revoked.iter().map(|one| one.what);
    memory.revocations.check_room(by, has_account, new).map_err(|bound| match bound {
        NoRoom::Key => RevokeError::KeyFull,
        NoRoom::Keys => RevokeError::KeysFull,
        NoRoom::Administrator => RevokeError::AdministratorFull,
    })
}

/// All that a key was given by the revoker, or at all.
fn of_key_by(
    memory: &Memory,
    accounts: &Accounts,
    by: Revoker,
    key: &PublicKey,
) -> Result<Vec<RememberedRevocation>, RevokeError> {
    let of_key = |grantor| {
        let what = Revoked::Key { key: *key, grantor };
        Ok(vec![RememberedRevocation { what, until: Moment::NEVER, by }])
    };
    match by {
        Revoker::Administrator => of_key(None),
        Revoker::Key(by) if accounts.get(&by).is_some() => of_key(Some(by)),
        Revoker::Key(by) => given(memory, &by, key),
    }
}

fn of_credential(by: Revoker, held: &Held) -> RememberedRevocation {
    RememberedRevocation { what: Revoked::Credential(held.digest()), until: held.until, by }
}

/// Returns whether credentials lead from one key to another.
pub(crate) fn leads(memory: &Memory, from: &PublicKey, to: &PublicKey) -> bool {
    let (mut open, mut seen) = (vec![*from], HashSet::from([*from]));
    while let Some(key) = open.pop() {
        for (_, held) in memory.signed_by(&key) {
            if held.names(to) {
                return true;
            }
            let named = held.licensees.iter().flatten().copied();
            open.extend(named.filter(|key| seen.insert(*key)));
        }
    }
    false
}

/// The credentials that a key signed for another one, each once, whoever holds them.
fn given(
    memory: &Memory,
    by: &PublicKey,
    to: &PublicKey,
) -> Result<Vec<RememberedRevocation>, RevokeError> {
    let mut seen = HashSet::new();
    let given = memory.signed_by(by).map(|(_, held)| held).filter(|held| held.names(to));
    let given = given.filter(|held| seen.insert(held.digest()));
    let given: Vec<_> = given.map(|held| of_credential(Revoker::Key(*by), held)).collect();
    if given.is_empty() { Err(RevokeError::NothingGiven) } else { Ok(given) }
}
