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

/// The credential or key to revoke.
#[derive(Debug, Clone)]
pub enum Revocation {
    /// The credential of this digest, which the server knows.
    Credential(AssertionDigest),
    /// A credential by its text, because the server may not know it yet.
    Text(String),
    /// All rights that a key received through the revoker; or all its rights, if an administrator
    /// revokes.
    Key(PublicKey),
}

/// The reason why nothing was revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// No such credential is held here.
    #[error("no credential of this digest is held here: give the text of the credential")]
    Unknown,
    /// Neither the revoker signed it, nor a key to which the revoker's credentials lead.
    #[error(
        "this key is not above the credential in a chain: only its signer or a key above may \
         revoke it"
    )]
    NotAbove,
    /// No credential from the revoker to the key is known.
    #[error("nothing is known here that this key gave to the other: give the text of a credential")]
    NothingGiven,
    /// The text is no credential.
    #[error(transparent)]
    Credential(#[from] UnverifiedReason),
    /// The revoker has neither an account nor a grant here.
    #[error(
        "nothing was granted to this key here, so that its credentials give nothing: submit the \
         credential that gives it rights before you revoke one that it signed"
    )]
    Stranger,
    /// The limit of revocations by one key is reached.
    #[error(
        "{REVOCATIONS_PER_KEY_MAX} revocations of one key are remembered, \
         {REVOCATIONS_PER_ACCOUNT_MAX} of a key with an account, until what they revoke has \
         expired: ask somebody above in the chain, or the administrator"
    )]
    KeyFull,
    /// The limit of revocations by all keys is reached.
    #[error(
        "the {REVOCATIONS_BY_KEYS_MAX} revocations of keys that are remembered are used up: ask \
         the administrator, who has room of his own"
    )]
    KeysFull,
    /// The limit of revocations by administrators is reached.
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
    /// Revokes: stores the revocations, and applies them to all calls that begin after this
    /// returns. Returns what was revoked.
    ///
    /// # Errors
    /// [`RevokeError`]; nothing was revoked.
    pub fn revoke(&self, by: Revoker, what: &Revocation) -> Result<Vec<Revoked>, RevokeError> {
        self.storage.in_turn(|turn| {
            let (revoked, unmade) = self.decide(by, what)?;
            self.remember(turn, by, (&revoked, &unmade))?;
            self.counters.revoked(revoked.len());
            self.changed();
            Ok(revoked.into_iter().map(|revoked| revoked.what).collect())
        })
    }

    /// Finds everything to revoke, and the objects whose creator must be forgotten.
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

    /// Checks that a key that revokes has an account, a grant or a policy here. Otherwise anybody
    /// could fill the memory with revocations of credentials that give no rights.
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

    /// Checks that the revoker signed a credential, or that its credentials lead to the signer. A
    /// credential that the server signed for a creator counts as below every key that leads to the
    /// creator.
    fn allowed(&self, memory: &Memory, by: Revoker, held: &Held) -> Result<(), RevokeError> {
        let Revoker::Key(by) = by else { return Ok(()) };
        let is_by_server = self.is_by_server(held);
        let creators = held.licensees.iter().flatten().filter(|_| is_by_server);
        let below: Vec<_> = creators.chain([held.signer()]).collect();
        let is_above = by == *held.signer() || below.into_iter().any(|key| leads(memory, &by, key));
        if is_above { Ok(()) } else { Err(RevokeError::NotAbove) }
    }

    /// The objects whose creator the server named in this credential. If it is revoked, the creator
    /// also loses the rights that it has without a credential.
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

/// All rights that a key received from the revoker, or all its rights.
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

/// The credentials that a key signed for another key, each once, of all holders.
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
