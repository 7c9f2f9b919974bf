//! Revoking credentials and keys.

use std::collections::HashSet;
use std::sync::Arc;

use comity_keynote::{AssertionDigest, UnverifiedReason};
use comity_keys::PublicKey;

use crate::accounts::Accounts;
use crate::grants::Grants;
use crate::held::Held;
use crate::limits::REVOCATIONS_MAX;
use crate::memory::Memory;
use crate::record::{MediumError, Record};
use crate::{Moment, ObjectId, Revoked};

/// The person who revokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoker {
    /// The administrator of the server, who may revoke anything.
    Administrator,
    /// The owner of a key, who may revoke what the key signed, and what was signed below it.
    Key(PublicKey),
}

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
    /// There are too many revocations.
    #[error("{REVOCATIONS_MAX} revocations are remembered already: ask the administrator")]
    Full,
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
        let accounts = self.accounts();
        let mut memory = self.write();
        let credential = match what {
            Revocation::Credential(digest) => {
                Some(memory.find(digest).ok_or(RevokeError::Unknown)?)
            }
            Revocation::Text(text) => Some(Arc::new(Held::read(text)?)),
            Revocation::Key(_) => None,
        };
        let revoked = match (&credential, what) {
            (Some(held), _) => {
                self.allowed(&memory, by, held)?;
                vec![of_credential(held)]
            }
            (None, Revocation::Key(key)) => of_key_by(&memory, &accounts, by, key)?,
            (None, _) => return Err(RevokeError::Unknown),
        };
        let made: Vec<_> =
            credential.iter().flat_map(|held| self.made_by_signature(held)).collect();
        self.remember(&mut memory, by, (&revoked, &made))?;
        self.counters.revoked(revoked.len());
        drop(memory);
        self.changed();
        Ok(revoked.into_iter().map(|(revoked, _)| revoked).collect())
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
        memory: &mut Memory,
        by: Revoker,
        (revoked, unmade): (&[(Revoked, Moment)], &[ObjectId]),
    ) -> Result<(), RevokeError> {
        // Keys may have used up the bound; the administrator must be able to revoke even so.
        let is_bounded = matches!(by, Revoker::Key(_));
        if is_bounded && memory.revocations.len() + revoked.len() > REVOCATIONS_MAX {
            return Err(RevokeError::Full);
        }
        let unmade_records = unmade.iter().copied().map(Record::Unmade);
        let records = revoked.iter().map(|(revoked, until)| Record::Revoked(*revoked, *until));
        let records: Vec<_> = records.chain(unmade_records).collect();
        self.save(memory, &records).map_err(RevokeError::Store)?;
        unmade.iter().for_each(|object| memory.creations.remove(object));
        for (revoked, until) in revoked {
            memory.revocations.insert(*revoked, *until);
        }
        Ok(())
    }
}

/// All that a key was given by the revoker, or at all.
fn of_key_by(
    memory: &Memory,
    accounts: &Accounts,
    by: Revoker,
    key: &PublicKey,
) -> Result<Vec<(Revoked, Moment)>, RevokeError> {
    match by {
        Revoker::Administrator => Ok(of_key(*key, None)),
        Revoker::Key(by) if accounts.get(&by).is_some() => Ok(of_key(*key, Some(by))),
        Revoker::Key(by) => given(memory, &by, key),
    }
}

fn of_key(key: PublicKey, grantor: Option<PublicKey>) -> Vec<(Revoked, Moment)> {
    vec![(Revoked::Key { key, grantor }, Moment::NEVER)]
}

fn of_credential(held: &Held) -> (Revoked, Moment) {
    (Revoked::Credential(held.digest()), held.until)
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

/// The credentials that a key signed for another one.
fn given(
    memory: &Memory,
    by: &PublicKey,
    to: &PublicKey,
) -> Result<Vec<(Revoked, Moment)>, RevokeError> {
    let signed = memory.signed_by(by).map(|(_, held)| held);
    let given: Vec<_> =
        signed.filter(|held| held.names(to)).map(|held| of_credential(held)).collect();
    if given.is_empty() { Err(RevokeError::NothingGiven) } else { Ok(given) }
}
